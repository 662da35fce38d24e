import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { LedgerCorruption } from '../../src/payments/ledger/invariants.ts';
import type { PaymentLedger, PaymentState } from '../../src/payments/ledger/ledger.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import type { Store } from '../../src/store/store.ts';
import { event, receipt, sha256, TRANSACTION, terms } from '../payments/ledger/samples.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { type Command, commands, LEASE, type Subject } from './commands.ts';
import { tableStore } from './table-store.ts';

const LIMITS = { eventsMaxLength: 2_000, receiptsMaxLength: 2_000 };
const RUNS = 150;
/** How far the clock of the table and of SQLite goes when a short lease must be over, milliseconds. */
const PAST_SHORT_LEASE_MS = 2;

let server: TestRedis;
let redis: Redis;
let stores: { readonly table: Store; readonly redis: Store; readonly sqlite: Store };
let virtualNow = 1_800_000_000_000;

before(async () => {
  server = await startRedis({ args: ['--appendonly', 'no'] });
  redis = new Redis({ path: server.socketPath });
  const now = () => virtualNow;
  stores = {
    table: tableStore(now),
    redis: await openRedisStore({ url: server.url, merchantId: 'shop', limits: LIMITS }),
    sqlite: openSqliteStore({ path: ':memory:', limits: LIMITS, now }),
  };
});
after(async () => {
  redis.disconnect();
  for (const store of Object.values(stores)) await store.close();
  await server.stop();
});

describe('the table, the Lua scripts and SQLite', () => {
  it('answer the same to the same commands, each sent once or twice', async () => {
    const reached = new Set<string>();
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const subject = newSubject();
        for (const command of sequence) {
          for (let sent = 0; sent < (command.twice ? 2 : 1); sent += 1) {
            const answers = await onAll((ledger) => answerTo(ledger, command, subject));
            same(answers, command.kind);
            reached.add(`${command.kind}: ${answers.table.kind}`);
          }
          if (command.leaseMs === LEASE.short) await shortLeaseOver();
          const records = await onAll(async (ledger) => comparable(await ledger.read(subject.payId(command.payment))));
          same(records, 'read');
          if (records.table !== undefined) reached.add(String(records.table['state']));
        }
        same(await trails(subject), 'events and receipts');
      }),
      { numRuns: RUNS },
    );
    // A comparison of commands that are all refused would prove nothing.
    for (const wanted of EXPECTED) assert.ok(reached.has(wanted), `never reached: ${wanted}`);
  });
});

const EXPECTED = [
  ...['run', 'busy', 'used', 'ended', 'corrupt'].map((kind) =>
    kind === 'corrupt' ? 'advance: corrupt' : `reserve: ${kind}`,
  ),
  ...['done', 'fenced', 'illegal', 'lost'].flatMap((kind) => [`advance: ${kind}`, `note: ${kind}`, `release: ${kind}`]),
  ...['gone', 'fenced', 'illegal'].map((kind) => `discard: ${kind}`),
  ...(['reserved', 'settling', 'settled', 'delivered', 'undelivered', 'refused', 'refundDue'] satisfies PaymentState[]),
];

/** Two authorizations that nobody has used before. */
function newSubject(): Subject {
  const run = randomUUID();
  const offered = [0, 1].map((i) => terms(`${run}-${i}`, { requestId: run }));
  const at = (payment: number) => offered[payment] ?? assert.fail();
  return { requestId: run, terms: at, payId: (payment) => at(payment).payId };
}

async function onAll<T>(work: (ledger: PaymentLedger) => Promise<T>) {
  return {
    table: await work(stores.table.ledger),
    redis: await work(stores.redis.ledger),
    sqlite: await work(stores.sqlite.ledger),
  };
}

function same(
  answers: { readonly table: unknown; readonly redis: unknown; readonly sqlite: unknown },
  what: string,
): void {
  assert.deepEqual(answers.redis, answers.table, `Redis differs from the table: ${what}`);
  assert.deepEqual(answers.sqlite, answers.table, `SQLite differs from the table: ${what}`);
}

async function answerTo(ledger: PaymentLedger, command: Command, subject: Subject) {
  try {
    const answer = await send(ledger, command, subject);
    return {
      kind: answer.kind,
      state: 'state' in answer ? answer.state : undefined,
      record: 'record' in answer ? comparable(answer.record) : undefined,
      leaseLeft: 'leaseLeftMs' in answer ? answer.leaseLeftMs > 0 : undefined,
    };
  } catch (thrown) {
    if (thrown instanceof LedgerCorruption) return { kind: 'corrupt' as const };
    throw thrown;
  }
}

/** The holder's tokens are taken from what the table holds, so that all three are sent the same bytes. */
async function send(ledger: PaymentLedger, command: Command, subject: Subject) {
  const offered = subject.terms(command.payment);
  const { payId, requestId, receiptId } = offered;
  const { leaseMs } = command;
  if (command.kind === 'reserve') {
    const bind = command.otherBind ? sha256('something else') : offered.bind;
    return ledger.reserve({ terms: { ...offered, bind }, owner: command.owner, leaseMs });
  }
  const { owner, fence } = command.holder;
  const held = { payId, owner, fence, step: command.step };
  const events = [event('backend.called', requestId, { data: { step: command.step } })];
  switch (command.kind) {
    case 'advance': {
      const carried = command.receipt
        ? { receipt: receipt(receiptId, requestId, { backendStatus: command.serial }) }
        : {};
      return ledger.advance({ ...held, to: command.to, leaseMs, facts: facts(command), events, ...carried });
    }
    case 'note':
      return ledger.note(held, facts(command), leaseMs);
    case 'release':
      return ledger.release(held);
    case 'discard':
      return ledger.discard(held, events);
  }
}

function facts({ transaction, reason }: { readonly transaction: boolean; readonly reason: string | undefined }) {
  return { ...(transaction ? { transaction: TRANSACTION } : {}), ...(reason === undefined ? {} : { reason }) };
}

/** Clocks differ, so times are compared by whether they are set; what they do shows in the answers. */
function comparable(record: object | undefined): Readonly<Record<string, unknown>> | undefined {
  if (record === undefined) return undefined;
  const times = ['leaseUntil', 'reservedAt', 'changedAt', 'settledAt'];
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, times.includes(name) ? value > 0 : value]),
  );
}

async function trails({ requestId }: Subject) {
  const trail = async ({ feed, receipts }: Store) => ({
    events: (await feed.page({ limit: 500, requestId })).events.map(({ id: _position, ...rest }) => rest),
    receipts: (await receipts.page({ limit: 10, requestId })).receipts,
  });
  return {
    table: await trail(stores.table),
    redis: await trail(stores.redis),
    sqlite: await trail(stores.sqlite),
  };
}

/** Waits for the clock of Redis itself, and sets the other one on. */
async function shortLeaseOver(): Promise<void> {
  virtualNow += PAST_SHORT_LEASE_MS;
  const clock = async () => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  };
  const start = await clock();
  while ((await clock()) < start + PAST_SHORT_LEASE_MS);
}
