import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import type { CheckoutClaims, Claimed, Hold, Ownership, Unknown } from '../../src/checkouts/claims.ts';
import { redisCheckouts } from '../../src/store/redis/checkouts.ts';
import { redisKeys } from '../../src/store/redis/keys.ts';
import {
  CHECKOUT_CLAIM,
  CHECKOUT_FINISH,
  CHECKOUT_RELEASE,
  CHECKOUT_UNKNOWN,
  SESSION_OWN,
  SESSION_OWNERSHIP,
} from '../../src/store/redis/script.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { tableClaims } from '../checkouts/table-claims.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { digestOf } from './checkout-samples.ts';
import { type VirtualRedis, virtualRedis } from './virtual-redis.ts';

const ROUNDS = 15;
/** Sequences of one round: keys and sessions of their own, one command of each in a step. */
const SIDE_BY_SIDE = 40;
/** A comparison of commands that are all refused, or never, would prove nothing. */
const ENOUGH = 20;
const LIMITS = { eventsMaxLength: 1, receiptsMaxLength: 1 };
const BEGAN = 1_800_000_000_000;
/**
 * Virtual milliseconds, far more than a round takes: what Redis deletes in real time is over before
 * that for its scripts.
 */
const STEP_MS = 100_003;
const SCRIPTS = [CHECKOUT_CLAIM, CHECKOUT_FINISH, CHECKOUT_UNKNOWN, CHECKOUT_RELEASE, SESSION_OWN, SESSION_OWNERSHIP];

/** Few of everything, so that commands share them. */
const spans = fc.constantFrom(1, 3, 40).map((steps) => steps * STEP_MS);
const whys = fc.constantFrom<Unknown>('timeout', 'reset', 'status', 'invalid_document', 'in_progress');
const at = { key: fc.nat(1), locked: fc.constantFrom(true, true, true, true, true, false) };
/** Mostly the attempt that was granted last, else any. */
const attempt = fc.oneof(
  { weight: 5, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.record({ owner: fc.nat(2), fence: fc.integer({ min: 1, max: 3 }) }) },
);
const claiming = fc.record({
  kind: fc.constant('claim' as const),
  ...at,
  owner: fc.nat(2),
  body: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1),
  leaseMs: spans,
  keepMs: spans,
  unopened: fc.constantFrom(undefined, 'one', 'two'),
});
const finishing = fc.record({
  kind: fc.constant('finish' as const),
  ...{ ...at, attempt },
  status: fc.constantFrom(200, 299, 300, 409),
  sealed: fc.constantFrom('one', 'two', ''),
  keepMs: spans,
});
const doubting = fc.record({ kind: fc.constant('unknown' as const), ...at, attempt, why: whys, keepMs: spans });
const releasing = fc.record({ kind: fc.constant('release' as const), ...at, attempt });
const whose = { session: fc.nat(1), client: fc.nat(1), keepMs: spans };
const owning = fc.record({ kind: fc.constant('own' as const), ...whose });
const seeing = fc.record({ kind: fc.constant('ownership' as const), ...whose });
const asked = fc.oneof(
  { weight: 5, arbitrary: claiming },
  { weight: 1, arbitrary: finishing },
  { weight: 2, arbitrary: doubting },
  { weight: 1, arbitrary: releasing },
  { weight: 1, arbitrary: owning },
  { weight: 1, arbitrary: seeing },
);
type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;
const commands = fc.record({ asked, twice: fc.boolean() });
/** How many steps pass after each command. */
const pauses = fc.array(fc.constantFrom(0, 0, 0, 1, 1, 2, 5), { minLength: 24, maxLength: 24 });

/** Every way in which a command can end. */
const ENDS = [
  ...['granted', 'granted earlier', 'granted otherKey', 'completed', 'in_flight', 'session_busy', 'conflict'].map(
    (kind) => `claim ${kind}`,
  ),
  ...['timeout', 'reset', 'status', 'invalid_document', 'in_progress', 'lease_expired', 'unopened'].map(
    (why) => `claim ${why}`,
  ),
  ...['own', 'other', 'none'].map((whose) => `ownership ${whose}`),
  ...['finish', 'unknown', 'release', 'own'].flatMap((kind) => [`${kind} true`, `${kind} false`]),
];

let server: TestRedis;
let redis: Redis;
let virtual: VirtualRedis;
before(async () => {
  server = await startRedis({ args: ['--appendonly', 'no'] });
  redis = new Redis({ path: server.socketPath });
  virtual = virtualRedis(redis, SCRIPTS);
});
after(async () => {
  redis.disconnect();
  await server.stop();
});

describe('claims of checkout operations in the table, in the Lua scripts and in SQLite', () => {
  it('answer the same, to the millisecond, to any sequence of commands, each sent once or twice', async (t) => {
    const seen: Record<string, number> = {};
    const sequence = fc.array(commands, { minLength: 8, maxLength: 24 });
    const rounds = fc.array(sequence, { minLength: 1, maxLength: SIDE_BY_SIDE, size: 'max' });
    await fc.assert(
      fc.asyncProperty(rounds, pauses, async (families, passing) => {
        await redis.flushall();
        let now = BEGAN;
        const sqlite = openSqliteStore({ path: ':memory:', limits: LIMITS, now: () => now });
        const table = tableClaims(() => now);
        const twins = { redis: redisCheckouts({ redis: virtual.client }, redisKeys('shop')), sqlite: sqlite.checkouts };
        const lanes = families.map((_, family) => newLane(family));
        try {
          for (const [step, pause] of passing.entries()) {
            await virtual.set(now);
            const sending = families.flatMap((one, family) => sendingsOf(one[step], lanes[family] ?? assert.fail()));
            const ask = (claims: CheckoutClaims) => Promise.all(sending.map(({ send }) => send(claims)));
            const expected = await ask(table);
            for (const [name, twin] of Object.entries(twins))
              assert.deepEqual(await ask(twin), expected, `${name} differs: ${JSON.stringify(sending)}`);
            for (const [i, { lane, asked: one }] of sending.entries()) note(seen, lane, one, expected[i]);
            now += STEP_MS * pause;
          }
        } finally {
          await sqlite.close();
        }
      }),
      { numRuns: ROUNDS },
    );
    t.diagnostic(JSON.stringify(seen));
    for (const end of ENDS) assert.ok((seen[end] ?? 0) >= ENOUGH, `rare: ${end}`);
  });
});

/**
 * One sequence on its way: keys and a session of its own, and the attempts that were granted last.
 */
interface Lane {
  readonly family: number;
  readonly granted: Map<number, { readonly owner: number; readonly fence: number }>;
}

function newLane(family: number): Lane {
  return { family, granted: new Map() };
}

interface Sending {
  readonly lane: Lane;
  readonly asked: Asked;
  readonly send: (claims: CheckoutClaims) => Promise<Answer>;
}

type Answer = Claimed | boolean | Ownership;

/** The command once or twice, by the state of the lane now. */
function sendingsOf(drawn: { asked: Asked; twice: boolean } | undefined, lane: Lane): readonly Sending[] {
  if (drawn === undefined) return [];
  const { asked: one, twice } = drawn;
  const sending = { lane, asked: one, send: commandOf(one, lane) };
  return twice ? [sending, sending] : [sending];
}

function commandOf(one: Asked, { family, granted }: Lane): Sending['send'] {
  if (one.kind === 'own' || one.kind === 'ownership') {
    const { kind, session, client, keepMs } = one;
    const named = { session: digestOf(`${family} ${session}`), owner: digestOf(`client ${client}`), keepMs };
    return (claims) => claims[kind](named);
  }
  const names = {
    name: digestOf(`${family} key ${one.key}`),
    lock: one.locked ? digestOf(`${family} session`) : undefined,
  };
  if (one.kind === 'claim') {
    const { leaseMs, keepMs, unopened, body } = one;
    const more = unopened === undefined ? {} : { unopened };
    const claim = { ...names, owner: `owner-${one.owner}`, fingerprint: digestOf(`body ${body}`), leaseMs, keepMs };
    return (claims) => claims.claim({ ...claim, ...more });
  }
  const { owner, fence } = one.attempt ?? granted.get(one.key) ?? { owner: 0, fence: 1 };
  const hold: Hold = { ...names, fingerprint: digestOf('body 0'), owner: `owner-${owner}`, fence };
  if (one.kind === 'finish') return (claims) => claims.finish(hold, one);
  return one.kind === 'unknown' ? (claims) => claims.unknown(hold, one) : (claims) => claims.release(hold);
}

/** Notes what was granted, and how the command ended. */
function note(seen: Record<string, number>, lane: Lane, one: Asked, answer: Answer | undefined): void {
  if (typeof answer === 'object' && 'fence' in answer && one.kind === 'claim')
    lane.granted.set(one.key, { owner: one.owner, fence: answer.fence });
  for (const end of endsOf(answer)) seen[`${one.kind} ${end}`] = (seen[`${one.kind} ${end}`] ?? 0) + 1;
}

function endsOf(answer: Answer | undefined): readonly string[] {
  if (typeof answer !== 'object') return [`${answer}`];
  if (answer.kind !== 'granted' || answer.earlier === undefined) return [answer.kind];
  const { why, otherKey } = answer.earlier;
  return ['granted earlier', why, ...(otherKey ? ['granted otherKey'] : [])];
}
