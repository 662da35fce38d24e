import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import express from 'express';
import { mountPublicRoutes } from '../../src/app/public-routes.ts';
import { readSigningKey } from '../../src/crypto/signing-key.ts';
import { checkoutKeysOf } from '../../src/mandates/ap2/trust/settings.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { type Changes, load } from '../config/document/document.ts';
import { asking, CHECKOUT_PEM, jwk, pem } from '../config/sections/ap2.ts';

const PATH = '/.well-known/jwks.json';
const CARD = pem();
const WITH_CARD: Changes = {
  'protocols.a2a': { enabled: true, signingKey: CARD },
  'resources.report.expose': ['http', 'a2a'],
};

async function get(t: TestContext, changes: Changes, method = 'GET'): Promise<Response> {
  const config = load(changes);
  const app = express();
  mountPublicRoutes(app, config, compileCatalogue(config), () => ({}));
  app.use((_req, res) => void res.sendStatus(404));
  const server: Server = app.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`, { method });
}

async function kids(answer: Response): Promise<readonly string[]> {
  const { keys } = (await answer.json()) as { keys: readonly { kid: string; d?: string }[] };
  for (const key of keys) assert.ok(!('d' in key), 'the private half stays inside');
  return keys.map(({ kid }) => kid);
}

describe('the published keys', () => {
  const card = readSigningKey(CARD);
  const checkout = checkoutKeysOf({ signingKey: CHECKOUT_PEM, kid: undefined, alsoTrust: [] }).own.publicJwk.kid;
  assert.ok(card.ok);
  const alsoTrust = [jwk('last-year')];
  const rows: readonly (readonly [title: string, changes: Changes, expected: readonly string[]])[] = [
    ['of the agent card', WITH_CARD, [card.key.publicJwk.kid]],
    ['of checkouts and receipts', asking(), [checkout]],
    ['under their configured name', asking({ 'authorization.ap2.checkout.kid': 'mine' }), ['mine']],
    ['of both, each under its own name', asking(WITH_CARD), [card.key.publicJwk.kid, checkout]],
    [
      'with those that are trusted besides, for old receipts',
      asking({ 'authorization.ap2.checkout.alsoTrust': alsoTrust }),
      [checkout, 'last-year'],
    ],
  ];
  for (const [title, changes, expected] of rows)
    it(`are those ${title}`, async (t) => {
      const answer = await get(t, changes);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('cache-control'), 'public, max-age=300');
      assert.deepEqual(await kids(answer), expected);
    });

  it('are not there where nothing is signed', async (t) => assert.equal((await get(t, {})).status, 404));
});
