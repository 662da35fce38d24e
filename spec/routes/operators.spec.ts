import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_FAILED_ATTEMPTS } from '../../src/server/limits/rates.ts';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { ROUTES } from './table.ts';
import { client, envelope, type Sent, send, sharedRoutes } from './world.ts';

const NEXT_TOKEN = 'the-next-token-of-the-tests';
const GUARDED = ROUTES.filter(({ auth }) => auth === 'operator token').map(({ path }) => path);

describe('operator tokens', () => {
  const world = sharedRoutes({ server: { adminTokenNext: NEXT_TOKEN } });
  const get = (path: string, name: string, authorization?: string, header = 'authorization') => {
    const headers: Sent['headers'] = authorization === undefined ? {} : { [header]: authorization };
    return send(world().agents, 'GET', path, { headers: { ...headers, ...client(name) } });
  };

  it(`${MAX_FAILED_ATTEMPTS} wrong ones are answered 401, then 429; a right one always passes`, async () => {
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS; tries += 1)
      await get('/api/events', 'guesser', `Bearer guess-${tries}`).expect(401).expect('www-authenticate', 'Bearer');
    const { headers } = await get('/api/receipts', 'guesser', 'Bearer guess-again')
      .expect(429)
      .expect(envelope('RATE_LIMITED'));
    assert.ok(Number(headers['retry-after']) > 0 && Number(headers['retry-after']) <= 60);
    assert.equal(headers['www-authenticate'], undefined);
    await get('/api/events', 'guesser', `Bearer ${OPERATOR_TOKEN}`).expect(200);
    await get('/api/events', 'another client', 'Bearer guess').expect(401);
  });

  it('a request without a token is no guess', async () => {
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS + 2; tries += 1) await get('/api/events', 'tokenless').expect(401);
  });

  it('open every route, the present one and the next, whatever the case of the scheme', async () => {
    for (const path of GUARDED)
      for (const token of [OPERATOR_TOKEN, NEXT_TOKEN])
        for (const scheme of ['Bearer', 'bearer', 'BEARER'])
          await get(path, 'operator', `${scheme} ${token}`).expect(200);
  });

  const OTHER_WAYS: Readonly<Record<string, readonly [query: string, authorization: string | undefined]>> = {
    'a query parameter': [`?token=${OPERATOR_TOKEN}&access_token=${OPERATOR_TOKEN}`, undefined],
    'another scheme': ['', `Basic ${OPERATOR_TOKEN}`],
    'no scheme': ['', OPERATOR_TOKEN],
    'two tokens in one header': ['', `Bearer ${OPERATOR_TOKEN}, Bearer ${OPERATOR_TOKEN}`],
    'a token with something behind it': ['', `Bearer ${OPERATOR_TOKEN} x`],
    'the beginning of a token': ['', `Bearer ${OPERATOR_TOKEN.slice(0, -1)}`],
    'a token of more than 512 characters': ['', `Bearer ${'x'.repeat(513)}`],
  };
  for (const [rule, [query, authorization]] of Object.entries(OTHER_WAYS))
    it(`${rule} is no token`, async () => {
      for (const path of GUARDED)
        await get(`${path}${query}`, rule, authorization).expect(401).expect(envelope('UNAUTHORIZED'));
    });

  for (const [header, value] of [
    ['cookie', `token=${OPERATOR_TOKEN}`],
    ['x-authorization', `Bearer ${OPERATOR_TOKEN}`],
    ['x-api-key', OPERATOR_TOKEN],
    ['proxy-authorization', `Bearer ${OPERATOR_TOKEN}`],
  ] as const)
    it(`a token in ${header} is none`, async () => {
      for (const path of GUARDED) await get(path, header, value, header).expect(401).expect(envelope('UNAUTHORIZED'));
    });

  it('a limit beyond the largest is clamped', async () => {
    await get(`/api/events?limit=${'9'.repeat(30)}`, 'operator', `Bearer ${OPERATOR_TOKEN}`).expect(200);
  });

  it('the page of the console allows nothing of another origin, and no text that becomes markup', async () => {
    const { headers } = await get('/console', 'operator');
    const policy = String(headers['content-security-policy']);
    for (const rule of [
      ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'"],
      ...["form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
    ])
      assert.ok(policy.split('; ').includes(rule), rule);
    assert.doesNotMatch(policy, /unsafe|\*|http/);
  });

  it('no file of the console but those of the table is served', async () => {
    for (const path of ['/console/files.ts', '/console/tsconfig.json', '/console/../main.ts', '/console/console.html'])
      await send(world().agents, 'GET', path).expect(404).expect(envelope('NOT_FOUND'));
  });
});
