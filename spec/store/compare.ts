import assert from 'node:assert/strict';
import { LedgerCorruption } from '../../src/payments/ledger/invariants.ts';
import type { KeptAnswer, PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import type { Store } from '../../src/store/port/store.ts';
import { type Answer, type Call, callOf, newSubject, payIdOf, type Subject, send } from './calls.ts';
import type { Command } from './commands.ts';
import type { Three, ThreeStores } from './three.ts';

/** Steps between two reads of the work list, which holds the records of all sequences. */
const LOOK_EVERY = 8;
/**
 * Times are this coarse where clocks differ, milliseconds: far less than a long lease, far more
 * than a test lasts.
 */
const COARSE_MS = 200_000;

/** One sequence. */
interface Lane {
  readonly subject: Subject;
  readonly left: Command[];
  /** Sent once, to be sent again. */
  again: Call | undefined;
  readonly records: Map<string, PaymentRecord>;
}

/** One call of one step. */
interface Sending {
  readonly lane: Lane;
  readonly call: Call;
  readonly payId: string;
  readonly repeated: boolean;
}

type Answered = { readonly answer: Answer } | { readonly thrown: string };

/**
 * Runs sequences side by side over the three stores and compares after every step: answers,
 * records, kept answers and the work list, and at the end the trails. Adds what was seen to
 * `reached`. Answers the number of calls. @throws AssertionError
 */
export async function compare(
  stores: ThreeStores,
  sequences: readonly (readonly Command[])[],
  reached: Set<string>,
): Promise<number> {
  const lanes = sequences.map((left): Lane => {
    return { subject: newSubject(), left: [...left], again: undefined, records: new Map() };
  });
  let calls = 0;
  for (let step = 0; ; step += 1) {
    const sendings = lanes.map(nextSending).filter((sending) => sending !== undefined);
    if (sendings.length === 0) break;
    calls += sendings.length;
    const answered = await stores.onAll(({ ledger }) =>
      Promise.all(sendings.map(({ call }) => outcomeOf(send(ledger, call)))),
    );
    await stores.step();
    const found = await stores.onAll(({ ledger }) => Promise.all(sendings.map(({ payId }) => look(ledger, payId))));
    for (const [i, sending] of sendings.entries()) {
      const what = `${sending.call.kind}${sending.repeated ? ' again' : ''}`;
      same(stores, at(answered, i), what);
      same(stores, at(found, i), `the record after ${what}`);
      see(reached, sending, answered.table[i], found.table[i]);
    }
    if (step % LOOK_EVERY === 0) await compareDue(stores, reached);
  }
  await compareDue(stores, reached);
  await compareUnpaid(stores, reached);
  same(stores, await stores.onAll(trails), 'events and receipts');
  return calls;
}

function nextSending(lane: Lane): Sending | undefined {
  const { again, left, subject, records } = lane;
  lane.again = undefined;
  if (again !== undefined) return { lane, call: again, payId: payIdOf(again), repeated: true };
  const command = left.shift();
  if (command === undefined) return undefined;
  const call = callOf(command, subject, records.get(subject.offered[command.payment].payId));
  if (command.twice) lane.again = call;
  return { lane, call, payId: payIdOf(call), repeated: false };
}

/** Errors of the caller and of the contents are answers; all others end the test. */
async function outcomeOf(asked: Promise<Answer>): Promise<Answered> {
  try {
    return { answer: await asked };
  } catch (thrown) {
    if (thrown instanceof LedgerCorruption || thrown instanceof RangeError) return { thrown: thrown.name };
    throw thrown;
  }
}

interface Found {
  readonly record: PaymentRecord | undefined;
  readonly kept: KeptAnswer | undefined;
}

async function look(ledger: Store['ledger'], payId: string): Promise<Found> {
  const [record, kept] = await Promise.all([ledger.read(payId), ledger.kept(payId)]);
  return { record, kept: kept === undefined ? undefined : { ...kept, body: new Uint8Array(kept.body) } };
}

async function compareUnpaid(stores: ThreeStores, reached: Set<string>): Promise<void> {
  const { table, redis, sqlite } = await stores.onAll(({ ledger }) => ledger.unpaid(1_000));
  assert.deepEqual(ids(sqlite).toSorted(), ids(table).toSorted(), 'SQLite differs from the table: unpaid work');
  assert.deepEqual(ids(redis).toSorted(), ids(table).toSorted(), 'Redis differs from the table: unpaid work');
  if (table.length > 0) reached.add('unpaid work');
}

async function compareDue(stores: ThreeStores, reached: Set<string>): Promise<void> {
  const { table, redis, sqlite } = await stores.onAll(({ ledger }) => ledger.due(10_000));
  assert.deepEqual(sqlite, table, 'SQLite differs from the table: what is due');
  assert.deepEqual(ids(redis).toSorted(), ids(table).toSorted(), 'Redis differs from the table: what is due');
  const times = redis.map(({ dueAt }) => dueAt);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    'Redis does not begin with the longest overdue',
  );
  const few = await stores.onAll(({ ledger }) => ledger.due(3));
  assert.deepEqual(few.sqlite, table.slice(0, 3));
  assert.deepEqual(ids(few.redis), ids(redis).slice(0, 3));
  if (table.length > 0) reached.add('something due');
}

function ids(records: readonly PaymentRecord[]): readonly string[] {
  return records.map(({ payId }) => payId);
}

/** Events by request, in order, and receipts. */
async function trails({ feed, receipts }: Store) {
  const { events } = await feed.page({ limit: 50_000 });
  const answered = (await receipts.page({ limit: 50_000 })).receipts;
  const plain = events.map(({ id: _position, ...event }) => event);
  return {
    events: Object.fromEntries(Map.groupBy(plain, ({ requestId }) => requestId)),
    receipts: answered,
  };
}

/**
 * SQLite runs on the table's own clock and must agree to the millisecond; the clock of Redis is its
 * own.
 */
function same(stores: ThreeStores, { table, redis, sqlite }: Three<unknown>, what: string): void {
  assert.deepEqual(sqlite, table, `SQLite differs from the table: ${what}`);
  const began = stores.began;
  assert.deepEqual(coarse(redis, began), coarse(table, began), `Redis differs from the table: ${what}`);
}

/** Lengths of time, reckoned by the store's own clock. */
const SPANS: ReadonlySet<string> = new Set(['leaseLeftMs', 'endedMs']);
const TIMES: ReadonlySet<string> = new Set(['leaseUntil', 'dueAt', 'reservedAt', 'changedAt', 'settledAt']);

/** Times as steps of COARSE_MS since the beginning, all else as it is. */
function coarse(value: unknown, began: number): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => {
      if (SPANS.has(name)) return [name, Math.round(Number(field) / COARSE_MS)];
      if (!TIMES.has(name) || field === undefined || field === 0) return [name, coarse(field, began)];
      return [name, Math.round((Number(field) - began) / COARSE_MS)];
    }),
  );
}

function at<T>({ table, redis, sqlite }: Three<readonly T[]>, i: number): Three<T | undefined> {
  return { table: table[i], redis: redis[i], sqlite: sqlite[i] };
}

/** Notes what a step has shown, and what the record is now. */
function see(reached: Set<string>, sending: Sending, answered: Answered | undefined, found: Found | undefined): void {
  const { lane, call, payId, repeated } = sending;
  const before = lane.records.get(payId);
  const { record, kept } = found ?? {};
  reached.add(`${call.kind}: ${label(answered, before, record, repeated)}`);
  if (record === undefined) lane.records.delete(payId);
  else lane.records.set(payId, record);
  if (kept !== undefined) reached.add('a kept answer');
  const { keeping = undefined } = call.kind === 'advance' || call.kind === 'note' ? call.command : {};
  if (kept !== undefined && keeping !== undefined && keeping.answer === undefined)
    reached.add('a kept answer for longer');
  if (record === undefined) return;
  reached.add(record.state);
  if (record.evidence !== undefined) reached.add(record.evidence);
  if (record.recovered !== undefined) reached.add('recovered');
  if (record.tokenDigest !== undefined) reached.add('a token');
  if (before === undefined && call.kind === 'reserve' && call.command.token?.kind === 'issued')
    if (record.keyDigest === undefined && record.tokenDigest === undefined) reached.add('a token of another payment');
  if (record.sending !== undefined) reached.add(`sending ${record.sending}`);
  if (record.mandate !== undefined) reached.add(`a mandate, ${record.state}`);
  if (before?.keyDigest === undefined && before !== undefined && record.keyDigest !== undefined)
    reached.add('a key that was noted');
}

function label(
  answered: Answered | undefined,
  before: PaymentRecord | undefined,
  record: PaymentRecord | undefined,
  repeated: boolean,
): string {
  if (answered === undefined) return 'nothing';
  if ('thrown' in answered) return answered.thrown;
  if (typeof answered.answer === 'boolean') return String(answered.answer);
  const { kind } = answered.answer;
  if (kind === 'done') return repeated ? 'done before' : 'done';
  if (kind === 'mandate') return answered.answer.reason;
  if (kind !== 'granted' || before === undefined) return kind;
  return before.fence === record?.fence ? 'granted again' : 'granted after take-over';
}
