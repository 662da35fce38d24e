import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { configWarnings } from '../../../src/config/warnings.ts';
import { createAuthority } from '../../support/certificates.ts';
import { type Changes, load, problems } from '../document/document.ts';
import { KEY, KEYS, selling, settings } from './acp.ts';

const CA = createAuthority('a private authority').certificate;
const NODES = ['redis-1.internal:6379', '[fd00::2]:6380'];
const SENTINEL = { name: 'shop', nodes: ['sentinel-1:26379', 'sentinel-2:26379'] };

const engineOf = (redis: object) => load({ storage: { redis } }).storage.engine;

describe('storage.redis', () => {
  it('is one server, sentinels or a cluster, with credentials, authorities and replicas beside it', () => {
    assert.deepEqual(engineOf({ url: 'redis://u:p@h:1/2' }), { kind: 'redis', url: 'redis://u:p@h:1/2', replicas: 0 });
    assert.deepEqual(engineOf({ url: 'unix:///run/redis.sock', password: 'p' }), {
      kind: 'redis',
      url: 'unix:///run/redis.sock',
      password: 'p',
      replicas: 0,
    });
    const beside = { username: 'shop', password: 'p', tls: { ca: CA, servername: 'redis.internal' }, replicas: 2 };
    assert.deepEqual(engineOf({ cluster: { nodes: NODES }, ...beside }), {
      kind: 'redis',
      cluster: {
        nodes: [
          { host: 'redis-1.internal', port: 6379 },
          { host: 'fd00::2', port: 6380 },
        ],
      },
      ...beside,
    });
    const login = { username: 'watcher', password: 's' };
    assert.deepEqual(engineOf({ sentinel: { ...SENTINEL, ...login } }), {
      kind: 'redis',
      sentinel: {
        name: 'shop',
        nodes: [
          { host: 'sentinel-1', port: 26379 },
          { host: 'sentinel-2', port: 26379 },
        ],
        ...login,
      },
      replicas: 0,
    });
  });

  it('takes several authorities, as a bundle has them', () => {
    const tls = { ca: `${CA}${createAuthority('another').certificate}` };
    assert.partialDeepStrictEqual(engineOf({ url: 'rediss://h', tls }), { tls });
  });

  it('quotes no password in what it refuses', () => {
    for (const redis of [
      { url: 'redis://:correct horse@h' },
      { url: 'redis://:correct-horse@h', password: 'correct-horse' },
    ])
      assert.doesNotMatch(JSON.stringify(problems({ storage: { redis } })), /horse/);
  });
});

const OTHER = Buffer.alloc(32, 9).toString('base64');
const ring = (...keys: readonly (readonly [id: string, key: string])[]) => keys.map(([id, key]) => ({ id, key }));
const ids = (changes: Changes) => settings(changes).idempotency.keys.map(({ id }) => id);

describe('storage.sealing', () => {
  it('is one ring for payments and checkouts', () => {
    const keys = ring(['new', OTHER], ['k1', KEY]);
    const config = load(selling({ [KEYS]: keys }));
    assert.deepEqual(config.storage.sealing, [
      { id: 'new', key: Buffer.from(OTHER, 'base64') },
      { id: 'k1', key: Buffer.from(KEY, 'base64') },
    ]);
    assert.deepEqual(ids({ [KEYS]: keys }), ['new', 'k1']);
  });

  it('may be left out: nothing is sealed then, and it is recommended where money is taken and something stays', () => {
    const file = { storage: { sqlite: { path: 'gateway.db' } } };
    assert.equal(load(file).storage.sealing, undefined);
    assert.match(configWarnings(load(file)).join('\n'), /^storage\.sealing\.keys: missing.*openssl rand -base64 32$/);
    assert.deepEqual(configWarnings(load({})), [], 'what is only in memory is stored nowhere');
    assert.deepEqual(configWarnings(load({ ...file, [KEYS]: [{ id: 'k1', key: KEY }] })), []);
  });

  it('counts as secret in each spelling', () => {
    const secrets = load({ [KEYS]: [{ id: 'k1', key: KEY }] }).secrets;
    for (const spelling of ['base64url', 'hex'] as const)
      assert.ok(secrets.includes(Buffer.from(KEY, 'base64').toString(spelling)));
  });
});
