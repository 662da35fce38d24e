import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { configWarnings } from '../../../src/config/warnings.ts';
import { createAuthority } from '../../support/certificates.ts';
import { type Changes, load, problems } from '../document/document.ts';
import { KEY, KEYS, selling, settings } from './acp.ts';

const CA = createAuthority('a private authority').certificate;
const NODES = ['redis-1.internal:6379', '[fd00::2]:6380'];
const SENTINEL = { name: 'shop', nodes: ['sentinel-1:26379', 'sentinel-2:26379'] };
const R = 'storage.redis';

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

  const refused: readonly (readonly [rule: string, redis: object, path: string, message: RegExp])[] = [
    ['no address', { password: 'p' }, R, /exactly one of url, sentinel or cluster/],
    ['two addresses', { url: 'redis://h', cluster: { nodes: NODES } }, R, /exactly one of url, sentinel or cluster/],
    ['a query, which would be settings of the client', { url: 'redis://h/0?family=6' }, `${R}.url`, /query/],
    ['a database that is no number', { url: 'redis://h/shop' }, `${R}.url`, /number of the database/],
    ['no host', { url: 'redis:///0' }, `${R}.url`, /name a host/],
    ['port 0', { url: 'redis://h:0' }, `${R}.url`, /port/],
    ['a password that breaks the URL', { url: 'redis://:a/b@h' }, `${R}.url`, /percent-encode/],
    ['a password with a number sign', { url: 'redis://:a#b@h' }, `${R}.url`, /percent-encode/],
    ['a space', { url: 'redis://h /0' }, `${R}.url`, /spaces/],
    ['a relative socket', { url: 'unix://redis.sock' }, `${R}.url`, /absolute path/],
    ['a user of the URL without password', { url: 'redis://shop@h' }, `${R}.url`, /without a password/],
    ['a user without password', { url: 'redis://h', username: 'shop' }, `${R}.password`, /needs a password/],
    ['passwords in two places', { url: 'redis://:p@h', password: 'p' }, `${R}.password`, /keep both in one place/],
    ['TLS over a socket', { url: 'unix:///run/r.sock', tls: {} }, `${R}.tls`, /unix socket/],
    ['a path where a certificate belongs', { url: 'rediss://h', tls: { ca: '/etc/ca.pem' } }, `${R}.tls.ca`, /file:/],
    ['a damaged certificate', { url: 'rediss://h', tls: { ca: CA.replace('MII', 'MIJ') } }, `${R}.tls.ca`, /PEM/],
    [
      'a user for the sentinels without password',
      { sentinel: { ...SENTINEL, username: 'w' } },
      `${R}.sentinel.password`,
      /needs a password/,
    ],
    ['a port that is none', { cluster: { nodes: [NODES[0], 'r:70000'] } }, `${R}.cluster.nodes[1]`, /1 to 65535/],
  ];
  for (const [rule, redis, path, message] of refused)
    it(`refuses ${rule}`, () => {
      const found = problems({ storage: { redis } });
      assert.deepEqual(
        found.map((problem) => problem.path),
        [path],
      );
      assert.match(found[0]?.message ?? '', message);
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
