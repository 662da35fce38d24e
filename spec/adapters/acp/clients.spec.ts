import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import { clientsByToken } from '../../../src/adapters/acp/adapter.ts';
import { AcpError } from '../../../src/adapters/acp/error.ts';
import { MAX_FAILED_ATTEMPTS } from '../../../src/server/limits/rates.ts';
import { readMetrics } from '../../support/read-metrics.ts';
import { rawCreate, refusalIn } from './raw.ts';
import { askAcp, assertAcpError, type Headers, OTHER_TOKEN, sharedCheckoutTestbed, TOKEN } from './testbed.ts';

// Each test has an address of its own: wrong tokens are counted.
const open = sharedCheckoutTestbed({ overrides: { server: { trustProxy: 1 } } });

let addresses = 0;
const newAddress = (): string => {
  addresses += 1;
  return `203.0.113.${addresses}`;
};
const create = (headers: Headers, address = newAddress()) =>
  askAcp(open.gateway.url, { headers: { 'x-forwarded-for': address, ...headers } });

describe('the bearer token of a checkout call', () => {
  for (const authorization of [`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER ${TOKEN}`, `Bearer ${OTHER_TOKEN}`])
    it(`lets ${authorization.slice(0, 7)}… of a known client in`, async () =>
      assert.equal((await create({ authorization })).status, 201));

  const refused = [
    undefined,
    '',
    'Bearer',
    `Bearer  ${TOKEN}`,
    `Bearer\t${TOKEN}`,
    `Bearer ${TOKEN} ${TOKEN}`,
    `Bearer ${TOKEN}, Bearer ${TOKEN}`,
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(0, -1)}`,
    `Bearer ${'x'.repeat(513)}`,
    `Basic ${TOKEN}`,
    TOKEN,
    `Bearer ${TOKEN.toUpperCase()}`,
  ];
  for (const authorization of refused)
    it(`is refused as ${JSON.stringify(authorization)?.slice(0, 40)}`, async () => {
      const answer = await create({ authorization });
      assertAcpError(answer, 401, 'unauthorized');
      assert.equal(answer.headers['www-authenticate'], 'Bearer realm="acp"');
    });

  it('is not taken from the query', async () =>
    void assertAcpError(
      await askAcp(open.gateway.url, {
        path: `/checkout_sessions?access_token=${TOKEN}`,
        headers: { authorization: undefined },
      }),
      401,
      'unauthorized',
    ));

  it('is needed for reading as well', async () =>
    void assertAcpError(
      await askAcp(open.gateway.url, {
        method: 'GET',
        path: '/checkout_sessions/cs_1',
        headers: { authorization: undefined },
      }),
      401,
      'unauthorized',
    ));

  it('is guessed ten times a minute from one address, then refused; a right one never is', async () => {
    const address = newAddress();
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS; tries += 1)
      assertAcpError(await create({ authorization: `Bearer guess-${tries}` }, address), 401, 'unauthorized');
    for (const method of ['POST', 'GET']) {
      const path = method === 'GET' ? '/checkout_sessions/cs_1' : '/checkout_sessions';
      const headers = { authorization: 'Bearer guess', 'x-forwarded-for': address };
      const answer = await askAcp(open.gateway.url, { method, path, headers });
      assertAcpError(answer, 429, 'rate_limited');
      assert.match(answer.headers['retry-after'] ?? '', /^(?:[1-9]|[1-5]\d|60)$/);
      assert.equal(answer.headers['www-authenticate'], undefined);
    }
    assert.equal((await create({}, address)).status, 201, 'the right token from the same address');
    assertAcpError(await create({ authorization: undefined }, address), 401, 'unauthorized');
    assertAcpError(await create({ authorization: 'Bearer guess' }), 401, 'unauthorized');
    const metrics = await readMetrics(open.gateway.managementUrl);
    assert.match(metrics, /^acg_rate_limited_total\{what="acp_token"\} 2$/m);
  });

  it('must come once: two are refused, even when one of them is right', async () => {
    for (const [one, other] of [
      [TOKEN, TOKEN],
      [TOKEN, 'wrong'],
      ['wrong', TOKEN],
    ]) {
      const answer = await rawCreate(open.gateway.url, [
        `X-Forwarded-For: ${newAddress()}`,
        `Authorization: Bearer ${one}`,
        `AUTHORIZATION: Bearer ${other}`,
      ]);
      assert.deepEqual(refusalIn(answer), { status: 401, code: 'unauthorized' });
      assert.match(answer, /\r\nwww-authenticate: Bearer realm="acp"\r\n/);
    }
  });
});

describe('the clients of a gateway', () => {
  const clientOf = clientsByToken([
    { id: 'one', tokens: ['token-1-old', 'token-1-new'] },
    { id: 'two', tokens: ['token-2'] },
  ]);
  const asking = (token: string) => {
    const value = `Bearer ${token}`;
    return clientOf({
      headers: { authorization: value },
      rawHeaders: ['Authorization', value],
      socket: {},
    } as unknown as IncomingMessage);
  };

  it('are known by any of their tokens, so that one can follow another', () => {
    assert.deepEqual(['token-1-old', 'token-1-new', 'token-2'].map(asking), ['one', 'one', 'two']);
  });
  it('are not known by another token', () => {
    for (const token of ['token-1', 'token-3', 'one']) assert.throws(() => asking(token), AcpError);
  });
});
