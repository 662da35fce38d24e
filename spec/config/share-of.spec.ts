import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { dividedBounds, processesOf, shareOf } from '../../src/config/share-of.ts';
import { ConfigError } from '../../src/problems/problem.ts';
import { type Changes, load, problems } from './document/document.ts';

const REDIS: Changes = { storage: { redis: { url: 'redis://x' } } };
const ACP: Changes = {
  'protocols.acp': {
    enabled: true,
    auth: { token: 'a'.repeat(32) },
    idempotency: { secret: 's'.repeat(32) },
    limits: { maxInFlight: 63 },
  },
  'storage.sealing': { keys: [{ id: 'one', key: Buffer.alloc(32).toString('base64') }] },
};
const ALL = load({ ...REDIS, ...ACP, 'limits.rate': { perSecond: 99, burst: 201 }, 'limits.maxStreams': 7 });

/** Limits of the schema that no process shares with another: why. */
const UNDIVIDED: Readonly<Record<string, string>> = {
  'limits.rate.by': 'what a client is',
  'limits.unpaidWork.windowSeconds': 'a time',
};

interface Node {
  readonly properties?: Readonly<Record<string, Node>>;
}

/** Every key of the schema below a section called `limits` that has no keys of its own. */
function limitsOf({ properties = {} }: Node, path = '', inside = false): readonly string[] {
  return Object.entries(properties).flatMap(([name, node]) => {
    const here = path === '' ? name : `${path}.${name}`;
    const within = inside || name === 'limits';
    if (node.properties !== undefined) return limitsOf(node, here, within);
    return within ? [here] : [];
  });
}

describe('the share of one process', () => {
  it('is decided for every limit of the schema', () => {
    const decided = [...Object.keys(dividedBounds(ALL)), ...Object.keys(UNDIVIDED)];
    assert.deepEqual([...limitsOf(schema as Node)].sort(), decided.sort());
  });

  for (const processes of [2, 3, 7])
    it(`of ${processes} is a whole part of each bound, and all parts are at most the bound`, () => {
      const whole = dividedBounds(ALL);
      const part = dividedBounds(shareOf(ALL, processes));
      assert.deepEqual(Object.keys(part), Object.keys(whole));
      for (const [path, bound] of Object.entries(whole)) {
        const share = part[path] ?? 0;
        assert.ok(Number.isInteger(share) && share >= 1, path);
        assert.ok(share * processes <= bound && (share + 1) * processes > bound, `${path}: ${share} of ${bound}`);
      }
      assert.equal(shareOf(ALL, processes).processes, processes);
    });

  it('of one process is the configuration itself', () => assert.equal(shareOf(ALL, 1), ALL));

  it('changes nothing but bounds', () => {
    const { limits: _limits, protocols, x402: _x402, processes: _processes, ...rest } = shareOf(ALL, 2);
    const { limits: _all, protocols: before, x402: _before, processes: _one, ...same } = ALL;
    assert.deepEqual(rest, same);
    assert.deepEqual({ ...protocols, acp: undefined }, { ...before, acp: undefined });
  });
});

describe('the number of workers', () => {
  const cpus = (): number => 6;

  it('is 1 unless it is configured', () => {
    assert.equal(processesOf(load({}), cpus), 1);
    assert.equal(processesOf(load(REDIS), cpus), 1);
    assert.equal(processesOf(load({ ...REDIS, 'server.workers': 3 }), cpus), 3);
  });

  it('auto is the processors there are, no more than a bound can be divided by, and 1 on SQLite', () => {
    const auto: Changes = { ...REDIS, 'server.workers': 'auto' };
    assert.equal(processesOf(load(auto), cpus), 6);
    assert.equal(
      processesOf(load(auto), () => 200),
      32,
    );
    assert.equal(processesOf(load({ ...auto, 'limits.maxStreams': 4 }), cpus), 4);
    assert.equal(processesOf(load({ 'server.workers': 'auto' }), cpus), 1);
  });

  it('above 1 is refused on SQLite, with the way out', () => {
    const message = 'must be 1 with storage.sqlite; several processes need storage.redis';
    assert.deepEqual(problems({ 'server.workers': 2 }), [{ path: 'server.workers', message }]);
    assert.deepEqual(problems({ 'server.workers': 1 }), []);
  });

  it('is an integer from 1 to 64, or auto', () => {
    for (const workers of [1, 64, 'auto']) assert.deepEqual(problems({ ...REDIS, 'server.workers': workers }), []);
    for (const workers of [0, 65, 1.5, 'all', true])
      assert.match(
        problems({ ...REDIS, 'server.workers': workers })[0]?.message ?? '',
        /^must be a number of processes from 1 to 64, or auto/,
      );
  });

  it('refuses a bound of which a worker would get nothing', () => {
    const config = load({ ...REDIS, 'server.workers': 4, 'limits.maxStreams': 3 });
    assert.throws(
      () => processesOf(config, cpus),
      (error) => error instanceof ConfigError && error.problems.map(({ path }) => path).join() === 'limits.maxStreams',
    );
  });
});
