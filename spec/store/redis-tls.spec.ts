import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import type { RedisSettings } from '../../src/store/port/settings.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { terms } from '../payments/ledger/samples.ts';
import { createAuthority } from '../support/certificates.ts';
import { freePorts } from '../support/ports.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/redis-replicas.ts';
import { temporaryDirectory } from './opened.ts';
import { leastRights, REDIS_LIMITS } from './redis-bed.ts';

const PASSWORD = 'correct-horse-battery';
const authority = createAuthority('a private authority');
const stranger = createAuthority('another one');
const directory = temporaryDirectory();

let server: TestRedis;
let port: number;
let plainPort: number;

before(async () => {
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  const { certificate, key } = authority.issue();
  [port = 0, plainPort = 0] = await freePorts(2);
  server = await startRedis({
    port: plainPort,
    args: [
      ...['--tls-port', String(port), '--tls-auth-clients', 'no'],
      ...['--tls-cert-file', file('server.pem', certificate), '--tls-key-file', file('server.key', key)],
      ...['--tls-ca-cert-file', file('ca.pem', authority.certificate)],
      ...['--user', 'default', 'off', '--user', 'gateway', 'on', `>${PASSWORD}`, ...leastRights('shop')],
    ],
  });
});
after(() => server?.stop());

const LOGIN = { username: 'gateway', password: PASSWORD };
const TRUST = { ca: authority.certificate };

/** A store and its log, with every property of every error. */
async function opened(t: TestContext, settings: RedisSettings) {
  const log: string[] = [];
  const line = (fields: object, message: string) => {
    const { err } = fields as { readonly err?: Error };
    const all = err === undefined ? '' : ` ${err.stack} ${JSON.stringify({ ...err })}`;
    log.push(`${message} ${JSON.stringify(fields)}${all}`);
  };
  const made = await openRedisStore({
    ...settings,
    merchantId: 'shop',
    limits: REDIS_LIMITS,
    log: { info: line, warn: line },
  });
  t.after(() => made.close());
  return { store: made, log };
}

describe('Redis over TLS, as a user with the least rights', () => {
  it('takes TLS from its settings as well as from the URL, and the name that the certificate must have', async (t) => {
    const settings = { url: `redis://127.0.0.1:${port}`, ...LOGIN, tls: { ...TRUST, servername: 'localhost' } };
    assert.deepEqual(await (await opened(t, settings)).store.check(), { status: 'ok' });
  });

  it('takes user and password from the URL', async (t) => {
    const settings = { url: `rediss://gateway:${PASSWORD}@127.0.0.1:${port}`, tls: TRUST };
    assert.deepEqual(await (await opened(t, settings)).store.check(), { status: 'ok' });
  });

  const tlsServer = (more: Partial<RedisSettings> = {}) => ({ url: `rediss://127.0.0.1:${port}`, tls: TRUST, ...more });
  const nodes = () => [{ host: '127.0.0.1', port }];
  const wrong = `${PASSWORD}-not`;
  const refused: readonly (readonly [name: string, settings: () => RedisSettings, cause: RegExp])[] = [
    [
      'an authority that did not sign the certificate',
      () => tlsServer({ ...LOGIN, tls: { ca: stranger.certificate } }),
      /certificate/,
    ],
    [
      'another name than that of the certificate',
      () => tlsServer({ ...LOGIN, tls: { ...TRUST, servername: 'redis.example' } }),
      /altnames/,
    ],
    ['plain text on a TLS port', () => ({ url: `redis://127.0.0.1:${port}`, ...LOGIN }), /storage\.redis\.tls/],
    [
      'TLS on a plain port',
      () => ({ ...tlsServer(LOGIN), url: `rediss://127.0.0.1:${plainPort}` }),
      /may not speak TLS/,
    ],
    ['a wrong password', () => tlsServer({ username: 'gateway', password: wrong }), /WRONGPASS/],
    [
      'a wrong password in the URL',
      () => ({ ...tlsServer(), url: `rediss://gateway:${wrong}@127.0.0.1:${port}` }),
      /WRONGPASS/,
    ],
    ['no password', () => tlsServer(), /NOAUTH/],
    ['a cluster that is none', () => ({ cluster: { nodes: nodes() }, ...LOGIN, tls: TRUST }), /./],
    [
      'sentinels that are none',
      () => ({ sentinel: { name: 'shop', nodes: nodes(), ...LOGIN }, ...LOGIN, tls: TRUST }),
      /./,
    ],
  ];
  for (const [name, settings, reason] of refused)
    it(`${name}: unreachable, with one clear line and no password`, async (t) => {
      const { store, log } = await opened(t, settings());
      const health = await store.check();
      assert.equal(health.status, 'unreachable');
      const error = await store.ledger.read(terms().payId).then(
        () => assert.fail('answered'),
        (thrown: unknown) => thrown,
      );
      assert.ok(error instanceof StoreError);
      await until(async () => log.length > 0, 'nothing is logged');
      assert.match(log[0] ?? '', reason);
      assert.match(log[0] ?? '', /^redis is not reachable/);
      const { cause } = error;
      assert.ok(cause instanceof Error);
      for (const text of [...log, JSON.stringify(health), `${cause.stack} ${JSON.stringify({ ...cause })}`])
        assert.ok(!text.includes(PASSWORD), text);
      assert.equal(log.length, 1);
    });
});
