import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { extractPublicKeyFromKid } from '@x402/extensions/offer-receipt';
import express from 'express';
import { exportJWK } from 'jose';
import { mountPublicRoutes } from '../../src/app/mount-routes.ts';
import { didUrlOf, didWebOf, type PublicJwk, readSigningKey } from '../../src/crypto/signing-key.ts';
import { checkoutKeysOf } from '../../src/mandates/ap2/checkout.ts';
import { keysOfDidDocument } from '../../src/mandates/ap2/did.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';
import { type Changes, load } from '../config/document/document.ts';
import { asking, CHECKOUT_PEM, jwk, pem } from '../config/sections/ap2.ts';

const PATH = '/.well-known/jwks.json';
const DID_PATH = '/.well-known/did.json';
const CARD = pem();
const RECEIPT_PEM = pem();
const OLD = keyOf(pem());
const WITH_CARD: Changes = {
  'protocols.a2a': { enabled: true, signingKey: CARD },
  'resources.report.expose': ['http', 'a2a'],
};

async function get(t: TestContext, changes: Changes, path = PATH): Promise<Response> {
  const config = load(changes);
  const app = express();
  mountPublicRoutes(app, config, compileCatalogue(config), () => ({}));
  app.use((_req, res) => void res.sendStatus(404));
  const server: Server = app.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
}

function keyOf(text: string): PublicJwk {
  const reading = readSigningKey(text);
  assert.ok(reading.ok);
  return reading.key.publicJwk;
}

async function kids(answer: Response): Promise<readonly string[]> {
  const { keys } = (await answer.json()) as { keys: readonly { kid: string; d?: string }[] };
  for (const key of keys) assert.ok(!('d' in key), 'the private half stays inside');
  return keys.map(({ kid }) => kid);
}

describe('the published keys', () => {
  const card = readSigningKey(CARD);
  const receipt = keyOf(RECEIPT_PEM).kid;
  const checkout = checkoutKeysOf({ signingKey: CHECKOUT_PEM, kid: undefined, alsoTrust: [] }).own.publicJwk.kid;
  assert.ok(card.ok);
  const alsoTrust = [jwk('last-year')];
  const rows: readonly (readonly [title: string, changes: Changes, expected: readonly string[]])[] = [
    ['of the agent card', WITH_CARD, [card.key.publicJwk.kid]],
    ['of checkouts and receipts', asking(), [checkout]],
    ['under their configured name', asking({ 'authorization.ap2.checkout.kid': 'mine' }), ['mine']],
    ['of both, each under its own name', asking(WITH_CARD), [card.key.publicJwk.kid, checkout]],
    ['of receipts', { signing: { key: RECEIPT_PEM } }, [receipt]],
    [
      'with those that signed receipts before',
      { signing: { key: RECEIPT_PEM, alsoPublish: [OLD] } },
      [receipt, OLD.kid],
    ],
    [
      'of everything that is signed',
      { ...asking(WITH_CARD), signing: { key: RECEIPT_PEM } },
      [card.key.publicJwk.kid, checkout, receipt],
    ],
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

  it('are not there where nothing is signed', async (t) => {
    assert.equal((await get(t, {})).status, 404);
    assert.equal((await get(t, {}, DID_PATH)).status, 404);
  });

  it('of receipts alone are keys of the host of merchant.publicBaseUrl', async (t) => {
    const changes = { ...asking(WITH_CARD), signing: { key: RECEIPT_PEM, alsoPublish: [OLD] } };
    const answer = await get(
      t,
      { ...changes, 'merchant.publicBaseUrl': 'https://api.shop.example:8443/agents' },
      DID_PATH,
    );
    assert.equal(answer.status, 200);
    const document = (await answer.json()) as { id: string; assertionMethod: readonly string[] };
    const did = 'did:web:api.shop.example%3A8443';
    assert.deepEqual([document.id, document.assertionMethod], [did, [`${did}#${receipt}`, `${did}#${OLD.kid}`]]);
    assert.deepEqual(
      [...keysOfDidDocument(document, did).keys()].filter((id) => id.startsWith('did:')),
      document.assertionMethod,
    );
  });

  it('of receipts are found as the official package looks for them', async (t) => {
    const app = express();
    const server = app.listen(0, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');
    const publicBaseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config = load({ signing: { key: RECEIPT_PEM }, 'merchant.publicBaseUrl': publicBaseUrl });
    mountPublicRoutes(app, config, compileCatalogue(config), () => ({}));
    const found = await extractPublicKeyFromKid(didUrlOf(didWebOf(publicBaseUrl), keyOf(RECEIPT_PEM)));
    assert.equal((await exportJWK(found)).x, keyOf(RECEIPT_PEM).x);
  });
});
