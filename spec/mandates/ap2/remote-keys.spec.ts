import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import { createIssuedCheckouts } from '../../../src/mandates/ap2/checkout.ts';
import { createTrustedIssuers, type IssuerTrust } from '../../../src/mandates/ap2/issuers.ts';
import { type KeysById, keysOfJwks, UselessKeys } from '../../../src/mandates/ap2/keys.ts';
import {
  createKeyFetcher,
  createRemoteKeys,
  type KeyFetcher,
  KeysUnavailable,
  MAX_KEYS_BYTES,
  type RemoteKeys,
} from '../../../src/mandates/ap2/remote-keys.ts';
import { createMandateVerifier } from '../../../src/mandates/ap2/verify.ts';
import { createKey, PROVIDER, publishedJwk, type TestKey } from '../../support/ap2/keys.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { NOW, profileWith, purchaseWith } from '../../support/ap2/purchase.ts';
import { issuerKey, leakedKey } from './cases.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const FIRST = keysOfJwks({ keys: [issuerKey('one').jwk] });
const SECOND = keysOfJwks({ keys: [issuerKey('one').jwk, issuerKey('two').jwk] });

/** An issuer whose answers the test gives, and a clock that it moves. */
class World {
  readonly keys: RemoteKeys;
  fetches = 0;
  now = 1_000;
  /** What a fetch finds: keys, a fault, or nothing yet. */
  answer: KeysById | Error | Promise<KeysById>;

  constructor(t: TestContext, answer: World['answer']) {
    t.mock.timers.enable({ apis: ['setInterval'] });
    this.answer = answer;
    this.keys = createRemoteKeys(
      async () => {
        this.fetches += 1;
        if (this.answer instanceof Error) throw this.answer;
        return this.answer;
      },
      () => this.now,
    );
    t.after(() => this.keys.close());
  }

  /** Time in which nothing runs, as in a process that was stopped. */
  sleep(ms: number): void {
    this.now += ms;
  }

  /** Time in which the timers run. */
  async live(t: TestContext, ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 30_000) {
      this.now += 30_000;
      t.mock.timers.tick(30_000);
      await turn();
    }
  }

  async found(): Promise<string> {
    return (await this.keys.check()).found;
  }
}

describe('the keys of a remote issuer', () => {
  it('are fetched at the start, and then answer at once', async (t) => {
    const world = new World(t, FIRST);
    assert.equal(await world.found(), 'fresh');
    assert.equal(world.keys.find('one'), FIRST.get('one'));
    assert.equal(world.fetches, 1);
  });

  it('calls before them wait for the one running fetch', async (t) => {
    const { promise, resolve } = Promise.withResolvers<KeysById>();
    const world = new World(t, promise);
    const waiting = Array.from({ length: 50 }, () => world.keys.find('one'));
    resolve(FIRST);
    assert.deepEqual(new Set(await Promise.all(waiting)), new Set([FIRST.get('one')]));
    assert.equal(world.fetches, 1);
  });

  it('an unknown id has them fetched again, once in 30 s for all callers', async (t) => {
    const world = new World(t, FIRST);
    await world.found();
    assert.equal(world.keys.find('two'), undefined, 'they have just come');
    world.sleep(30_000);
    world.answer = SECOND;
    const both = [world.keys.find('two'), world.keys.find('three')];
    assert.equal(world.fetches, 2);
    assert.deepEqual(await Promise.all(both), [SECOND.get('two'), undefined]);
    world.sleep(29_999);
    assert.equal(world.keys.find('three'), undefined);
    assert.equal(world.fetches, 2);
    world.sleep(1);
    assert.equal(await world.keys.find('three'), undefined);
    assert.equal(world.fetches, 3);
  });

  it('an unknown id stays unknown while the issuer is away', async (t) => {
    const world = new World(t, FIRST);
    await world.found();
    world.sleep(30_000);
    world.answer = new Error('away');
    assert.equal(await world.keys.find('two'), undefined);
    assert.equal(world.keys.find('one'), FIRST.get('one'), 'what is known stays known');
    world.sleep(29_999);
    assert.equal(world.keys.find('two'), undefined);
    assert.equal(world.fetches, 2, 'a failed look counts as one');
  });

  it('a known id has them fetched again only when they are old, once in 30 s', async (t) => {
    const world = new World(t, FIRST);
    await world.found();
    world.sleep(30_000);
    assert.equal(world.keys.find('one'), FIRST.get('one'));
    assert.equal(world.fetches, 1, 'they are not old');
    world.sleep(10 * MINUTE);
    world.answer = new Error('away');
    for (let call = 0; call < 3; call += 1) {
      assert.equal(world.keys.find('one'), FIRST.get('one'));
      await turn();
    }
    assert.equal(world.fetches, 2, 'the issuer is not asked with every call while it is away');
  });

  it('are tried again in the background when they never came', async (t) => {
    const world = new World(t, new Error('away'));
    assert.equal(await world.found(), 'none');
    world.answer = FIRST;
    await world.live(t, 30_000);
    assert.equal(await world.found(), 'fresh');
  });

  it('are kept new in the background: no call uses old ones', async (t) => {
    const world = new World(t, FIRST);
    await world.found();
    await world.live(t, HOUR);
    assert.equal(await world.found(), 'fresh');
    assert.ok(world.fetches > 6 && world.fetches <= 9, `${world.fetches} fetches in an hour`);
    world.answer = SECOND;
    await world.live(t, 9 * MINUTE);
    assert.equal(world.keys.find('two'), SECOND.get('two'));
    assert.equal(world.keys.find('one'), SECOND.get('one'), 'a key that was replaced is gone');
  });

  it('old ones serve for a day while the issuer is away, with a fetch every 30 s, and no longer', async (t) => {
    const world = new World(t, FIRST);
    await world.found();
    world.answer = new Error('away');
    await world.live(t, 10 * MINUTE);
    assert.equal(await world.found(), 'stale');
    assert.ok(world.fetches <= 6, `${world.fetches} fetches in ten minutes`);
    assert.match(String((await world.keys.check()).cause), /away/);
    await world.live(t, 24 * HOUR - 11 * MINUTE);
    assert.equal(world.keys.find('one'), FIRST.get('one'));
    await world.live(t, MINUTE);
    assert.equal(await world.found(), 'none');
    assert.throws(() => world.keys.find('one'), KeysUnavailable);
    world.answer = SECOND;
    await world.live(t, 30_000);
    assert.deepEqual(await world.keys.check(), { found: 'fresh', cause: undefined });
    assert.equal(world.keys.find('one'), SECOND.get('one'));
  });

  it('after a sleep the first call is answered with the old ones and has new ones fetched', async (t) => {
    const world = new World(t, FIRST);
    await world.found();
    world.sleep(10 * MINUTE);
    world.answer = SECOND;
    assert.equal(world.keys.find('one'), FIRST.get('one'));
    assert.equal(world.keys.find('one'), FIRST.get('one'));
    await turn();
    assert.equal(world.fetches, 2);
    assert.equal(world.keys.find('one'), SECOND.get('one'));
  });

  it('no call waits for an issuer that was never there, except for one fetch in 5 s', async (t) => {
    const world = new World(t, new Error('away'));
    assert.equal(await world.found(), 'none');
    assert.throws(
      () => world.keys.find('one'),
      (error) => error instanceof KeysUnavailable && /away/.test(String(error.cause)),
    );
    assert.equal(world.fetches, 1);
    world.sleep(5_000);
    await assert.rejects(async () => world.keys.find('one'), KeysUnavailable);
    assert.equal(world.fetches, 2);
    world.sleep(5_000);
    world.answer = FIRST;
    assert.equal(await world.keys.find('one'), FIRST.get('one'));
  });

  it('are fetched no more once they are closed', async (t) => {
    const world = new World(t, FIRST);
    await world.found();
    world.keys.close();
    await world.live(t, HOUR);
    assert.equal(world.fetches, 1);
  });
});

const { jwk } = issuerKey('one');
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }) as JsonObject;

function kids(keys: readonly Json[]): readonly string[] {
  return [...keysOfJwks({ keys }).keys()];
}

describe('a JWK Set of an issuer', () => {
  it('gives its keys by kid, each with the algorithm of its curve', () => {
    const keys = keysOfJwks({ keys: [jwk, issuerKey('two', 'P-384').jwk], other: 1 });
    assert.deepEqual(
      [...keys].map(([kid, { alg }]) => [kid, alg]),
      [
        ['one', 'ES256'],
        ['two', 'ES384'],
      ],
    );
  });

  const passedOver: Readonly<Record<string, Json>> = {
    'a key with its private half': leakedKey('x'),
    'a key without kid': issuerKey('').jwk,
    'a key whose kid is too long': issuerKey('x'.repeat(513)).jwk,
    'a key whose kid is a number': { ...issuerKey('x').jwk, kid: 7 },
    'no object': 'x',
  };
  for (const [what, other] of Object.entries(passedOver))
    it(`passes over ${what}`, () => assert.deepEqual(kids([other, jwk]), ['one']));

  it('takes neither of two keys with one kid, however often it comes', () => {
    assert.deepEqual(kids([issuerKey('x').jwk, jwk, issuerKey('x').jwk]), ['one']);
    assert.deepEqual(kids([issuerKey('x').jwk, issuerKey('x').jwk, issuerKey('x').jwk, jwk]), ['one']);
  });

  it('may have a hundred keys', () =>
    assert.equal(kids(Array.from({ length: 100 }, (_, index) => ({ ...jwk, kid: `${index}` }))).length, 100));

  const useless: Readonly<Record<string, Json>> = {
    'no object': [],
    nothing: null,
    'no list': { keys: { one: jwk } },
    'an empty list': { keys: [] },
    'only keys for something else': { keys: [{ ...rsa, kid: 'x' }] },
    'more keys than are read': { keys: Array.from({ length: 101 }, (_, index) => ({ ...jwk, kid: `${index}` })) },
  };
  for (const [what, document] of Object.entries(useless))
    it(`is useless with ${what}`, () => assert.throws(() => keysOfJwks(document), UselessKeys));
});

const DEADLINE_MS = 300;
const padded = (length: number): string => `{"keys":[]}${' '.repeat(length - 11)}`;

/** What a hostile or broken issuer answers, by path. */
const ANSWERS: Readonly<Record<string, RequestListener>> = {
  '/good': (_req, res) => res.end('{"keys":[]}'),
  '/largest': (_req, res) => res.end(padded(MAX_KEYS_BYTES)),
  '/too-large': (_req, res) => res.end(padded(MAX_KEYS_BYTES + 1)),
  '/endless': (_req, res) => {
    const more = (): void => {
      while (!res.destroyed && res.write(padded(65_536)));
    };
    res.on('drain', more);
    more();
  },
  '/silent': () => undefined,
  '/dripping': (_req, res) => {
    const drip = setInterval(() => res.write(' '), 20);
    res.on('close', () => clearInterval(drip));
  },
  '/redirect': (_req, res) => res.writeHead(302, { location: '/good' }).end(),
  '/error': (_req, res) => res.writeHead(500).end('{"keys":[]}'),
  '/garbage': (_req, res) => res.end('<html>'),
  '/duplicate': (_req, res) => res.end('{"keys":[],"keys":[]}'),
  '/prototype': (_req, res) => res.end('{"__proto__":{"keys":[]}}'),
  '/latin1': (_req, res) => res.end(Buffer.from('{"keys":"\u00fc"}', 'latin1')),
  '/headers': (_req, res) => res.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end('{"keys":[]}'),
  '/cut': (_req, res) => {
    res.writeHead(200, { 'content-length': '100' }).write('{"keys":');
    setTimeout(() => res.destroy(), 20);
  },
};

describe('fetching the keys of an issuer', () => {
  let server: Server;
  let origin: string;
  let fetcher: KeyFetcher;
  /** With a deadline that a busy machine may miss: for answers that never come. */
  let hasty: KeyFetcher;
  const asked: string[] = [];
  before(async () => {
    server = createServer((req, res) => {
      asked.push(req.url ?? '');
      ANSWERS[req.url ?? '']?.(req, res);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    fetcher = createKeyFetcher({ plainOnLoopback: true });
    hasty = createKeyFetcher({ deadlineMs: DEADLINE_MS, plainOnLoopback: true });
  });
  after(async () => {
    await Promise.all([fetcher.close(), hasty.close()]);
    server.closeAllConnections();
    server.close();
  });

  for (const path of ['/good', '/largest'])
    it(`reads ${path}`, async () => assert.deepEqual(await fetcher.fetch(origin + path), { keys: [] }));

  const refused: Readonly<Record<string, RegExp>> = {
    '/too-large': /larger than 65536 bytes/,
    '/endless': /larger than 65536 bytes/,
    '/redirect': /status 302/,
    '/error': /status 500/,
    '/garbage': /not strict JSON \(malformed_json\)/,
    '/duplicate': /not strict JSON \(duplicate_key\)/,
    '/prototype': /not strict JSON \(forbidden_key\)/,
    '/latin1': /not strict JSON \(malformed_json\)/,
    '/headers': /Headers Overflow/,
    '/cut': /other side closed|content-length/,
  };
  for (const [path, message] of Object.entries(refused))
    it(`refuses ${path}`, () => assert.rejects(fetcher.fetch(origin + path), message));

  it('follows no redirect', () => assert.equal(asked.filter((path) => path === '/good').length, 1));

  for (const path of ['/silent', '/dripping'])
    it(`gives up on ${path} at its deadline`, async () => {
      const started = performance.now();
      await assert.rejects(hasty.fetch(origin + path), /timeout|aborted/i);
      assert.ok(performance.now() - started < DEADLINE_MS * 10, 'it did not wait for the end');
    });

  it('speaks https only, unless a test asks for this machine itself', async () => {
    const strict = createKeyFetcher();
    await assert.rejects(strict.fetch(`${origin}/good`), /over https only/);
    await assert.rejects(fetcher.fetch('http://localhost:1/good'), /over https only/);
    await assert.rejects(fetcher.fetch('ftp://127.0.0.1/good'), /over https only/);
    await strict.close();
  });

  it('connects to no name that leads to a forbidden address', async () => {
    const led = createKeyFetcher({
      resolve: (_name, _options, callback) => callback(null, [{ address: '169.254.169.254', family: 4 }]),
    });
    await assert.rejects(led.fetch('https://keys.example/jwks.json'), /link-local, metadata/);
    await led.close();
  });
});

describe('an issuer that changes its keys', () => {
  const mint = createMint();
  const next = createKey('next-key');
  let published: readonly TestKey[] = [mint.parties.provider];
  let away = false;
  let fetches = 0;
  let now = 0;
  let server: Server;
  let fetcher: KeyFetcher;
  let trust: IssuerTrust;
  let verdict: (key: TestKey) => Promise<string>;

  before(async () => {
    server = createServer((_req, res) => {
      fetches += 1;
      if (away) res.destroy();
      else res.end(JSON.stringify({ keys: published.map(({ publicJwk }) => publicJwk) }));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
    fetcher = createKeyFetcher({ plainOnLoopback: true });
    const role = { kind: 'mandates' } as const;
    trust = createTrustedIssuers([{ id: PROVIDER, role, allowKidOnly: false, source: { kind: 'jwks', url } }], {
      fetcher,
      monotonic: () => now,
    });
    const verifier = createMandateVerifier({
      profile: profileWith(),
      trust,
      checkoutKeys: [publishedJwk(mint.parties.checkout)],
      minted: createIssuedCheckouts(),
    });
    verdict = async (key) => {
      const { header } = mint.autonomous({ issuer: { key, iss: PROVIDER } });
      const result = await verifier({ kind: 'text', value: header }, purchaseWith(), NOW);
      return result.kind === 'accepted' ? result.kind : result.reason;
    };
  });
  after(async () => {
    trust.close();
    await fetcher.close();
    server.closeAllConnections();
    server.close();
  });

  it('many first calls at once cost one fetch, and are accepted', async () => {
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => verdict(mint.parties.provider)));
    assert.deepEqual(new Set(verdicts), new Set(['accepted']));
    assert.equal(fetches, 1);
  });

  it('a key that it has not published is unknown, and soon known when it has', async () => {
    now = MINUTE;
    assert.equal(await verdict(next), 'unknown_key');
    published = [mint.parties.provider, next];
    assert.equal(await verdict(next), 'unknown_key', 'within 30 s it is not asked again');
    now = 2 * MINUTE;
    assert.equal(await verdict(next), 'accepted');
    assert.equal(fetches, 3);
  });

  it('its keys are used while it is away', async () => {
    away = true;
    now = 20 * MINUTE;
    assert.equal(await verdict(next), 'accepted');
    assert.equal((await trust.check()).found, 'degraded');
  });

  it('after a day without an answer its mandates cannot be checked, which is no fault of theirs', async () => {
    now = 25 * 60 * MINUTE;
    assert.equal(await verdict(next), 'provider_unavailable');
    assert.equal((await trust.check()).found, 'unreachable');
  });

  it('a key that it removed is unknown', async () => {
    away = false;
    published = [next];
    now += MINUTE;
    assert.equal(await verdict(next), 'accepted');
    assert.equal(await verdict(mint.parties.provider), 'unknown_key');
  });
});
