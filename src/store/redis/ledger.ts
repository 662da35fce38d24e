/** The ledger of payments in Redis: each command is one script. */

import { SWEPT_AT_ONCE } from '../../mandates/register/register-table.ts';
import {
  assertFacts,
  assertKeeping,
  assertLease,
  assertNewToken,
  assertPause,
  assertTerms,
  LedgerCorruption,
  REQUIRED,
} from '../../payments/ledger/invariants.ts';
import type {
  Advance,
  Keeping,
  KeptAnswer,
  Note,
  PaymentLedger,
  PaymentRecord,
  PaymentState,
  PaymentTerms,
} from '../../payments/ledger/ledger.ts';
import { MAX_REFUSALS, SWEPT_REFUSALS } from '../../payments/ledger/refusals.ts';
import { advance, ENDS_USES, FORGOTTEN_IN, note } from '../../payments/ledger/table.ts';
import {
  DELIVERING_STATES,
  isFinal,
  notableIn,
  OPEN_STATES,
  RECORD_RETENTION_MS,
  retentionOf,
  sourcesOf,
  WORK_RETENTION_MS,
} from '../../payments/ledger/transitions.ts';
import { MOST_UNPAID } from '../../payments/ledger/unpaid.ts';
import { eventJson } from '../port/events.ts';
import type { TrimCount } from '../port/receipts.ts';
import type { StoreLimits } from '../port/settings.ts';
import { TRIMMED_AT_ONCE } from '../port/store.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import { bookKeys, type RedisKeys, registerKeys } from './keys.ts';
import { runReplicated } from './replication.ts';
import { advancedOf, parts, recordFrom, reservationOf, standingOf, trimmedIn } from './reply.ts';
import { DISCARD, DUE, FORGET, RENEW, RESERVE, run, WRITE, WRITES } from './script.ts';
import { gatherWrites } from './writes.ts';

/**
 * States that a replica must have. Money moves between `settling` and `settled`: a failover that
 * forgets one of them forgets a payment. One that forgets `withdrawn` settles a payment whose buyer
 * was answered that nothing was taken.
 */
const WAITING: ReadonlySet<PaymentState> = new Set(['settling', 'settled', 'withdrawn']);

/** Between the head of a kept answer, JSON of one line, and its body. */
const SEPARATOR = Buffer.from('\n');

interface RedisLedger extends PaymentLedger {
  /** Sends the changes that wait for others, so that what is read next has them. */
  sendWaiting(): void;
}

/**
 * The scripts know the table of transitions only as the lists in their plan. `replicated`: a
 * connection on which the writes around a settlement wait for a replica; absent, they do not wait.
 */
export function redisLedger(
  { redis, replicated }: { readonly redis: RedisClient; readonly replicated?: RedisClient | undefined },
  keys: RedisKeys,
  limits: StoreLimits,
  trimmed: TrimCount,
): RedisLedger {
  const { eventsMaxLength, receiptsMaxLength } = limits;
  const shared = { eventsMaxLength: String(eventsMaxLength), receiptsMaxLength, trimmedAtOnce: TRIMMED_AT_ONCE };
  const register = registerKeys(keys);
  const common = [keys.open, keys.events, ...bookKeys(keys), ...register, keys.unpaid];
  const writes = gatherWrites((changes) =>
    run(redis, WRITES, {
      keys: [...common, ...changes.flatMap(({ payment, kept }) => [payment, kept])],
      plan: { ...shared, writes: changes.map(({ plan, waitedMs }) => ({ ...plan, waitedMs })) },
      rest: changes.flatMap(({ rest }) => rest),
    }),
  );

  const write = async (command: Advance | Note, change: Change): Promise<unknown> => {
    const { payId } = command;
    const { plan, rest } = changePlan(command, change);
    const [payment, kept] = [keys.payment(payId), keys.kept(payId)];
    const waits = replicated !== undefined && change.to !== undefined && WAITING.has(change.to);
    const reply = waits
      ? await runReplicated(replicated, WRITE, { keys: [...common, payment, kept], plan: { ...shared, ...plan }, rest })
      : await writes.write({ payment, kept, plan, rest }, mayWait(command, change));
    trimmed.add({ length: trimmedIn(reply) });
    return reply;
  };

  return {
    async reserve(command) {
      const { terms: given, owner, leaseMs, longestMs, token, proof } = command;
      assertLease(leaseMs);
      assertNewToken(token);
      assertLease(longestMs ?? 0);
      const terms = assertTerms(given);
      const { payId, bind, keyDigest, tokenDigest, mandate, validBefore } = terms;
      const states = { openStates: OPEN_STATES, deliveringStates: DELIVERING_STATES };
      const sweep = { workRetentionMs: WORK_RETENTION_MS, sweptAtOnce: SWEPT_AT_ONCE };
      const known = { payId, bind, keyDigest, tokenDigest, claim: mandate, validBefore };
      const asked = { owner, leaseMs, longestMs, proof, token, hasKey: keyDigest !== undefined };
      const execution = {
        keys: [
          ...[keys.payment(payId), keys.open, keys.refusals],
          ...(mandate === undefined ? [] : register),
          ...(token?.kind === 'issued' ? [keys.token(token.id)] : []),
        ],
        plan: { retentionMs: RECORD_RETENTION_MS, ...sweep, ...known, ...asked, ...states },
        rest: fieldsOf(terms),
      };
      writes.sendWaiting(keys.payment(payId));
      const reservation = reservationOf(await run(redis, RESERVE, execution), command);
      // An attempt that takes over an uncertain settlement may send it: a replica must have the
      // record as `settling` first, also when another attempt wrote that.
      if (replicated === undefined || reservation.kind !== 'granted' || reservation.record.state !== 'settling')
        return reservation;
      return reservationOf(await runReplicated(replicated, RESERVE, execution), command);
    },
    async advance(command) {
      const reply = await write(command, changeOfState(command));
      return advancedOf(reply, command.seen, (seen, now) => advance(seen, command, now));
    },
    async note(command) {
      const reply = await write(command, changeInPlace(command));
      return advancedOf(reply, command.seen, (seen, now) => note(seen, command, now));
    },
    async renew({ payId, owner, fence }, leaseMs) {
      assertLease(leaseMs);
      return (
        (await run(redis, RENEW, {
          keys: [keys.payment(payId), keys.open],
          plan: { payId, owner, fence, leaseMs },
        })) === 1
      );
    },
    async discard({ payId, owner, fence }, events, refusal) {
      const room = { maxRefusals: MAX_REFUSALS, sweptRefusals: SWEPT_REFUSALS };
      const plan = { ...shared, ...room, payId, owner, fence, refusal };
      const touched = [keys.payment(payId), keys.open, keys.events, keys.refusals, keys.refusalEnds, ...register];
      const [kind, detail] = parts(await run(redis, DISCARD, { keys: touched, plan, rest: events.map(eventJson) }));
      if (kind === 'gone') return { kind };
      const standing = standingOf(kind, detail);
      return standing.kind === 'lost' ? { kind: 'gone' } : standing;
    },
    read: (payId) => readRecord(redis, keys, payId),
    async kept(payId) {
      const bytes = await answered(redis.getBuffer(keys.kept(payId)));
      return bytes === null ? undefined : keptFrom(bytes);
    },
    unpaid: (limit) => unpaidRecords(redis, keys, limit),
    due: (limit, withinMs = 0) => dueRecords(redis, keys, limit, withinMs),
    sendWaiting: () => writes.sendWaiting(),
  };
}

/** What change.lua needs of the table beside the command. */
interface Change {
  readonly from: readonly PaymentState[];
  readonly to?: PaymentState;
  readonly final: boolean;
  readonly failedDelivery: boolean;
  readonly stampSettled: boolean;
  readonly required: readonly string[];
  /** Replaced where a record has them. */
  readonly forget: Readonly<Record<string, string>>;
  readonly dropReceipt?: string;
  readonly retentionMs: number;
  /** Lists it among the unpaid ones if the backend had answered; the most that are listed. */
  readonly unpaid?: number;
  /** What becomes of the uses of a mandate, where a record has one. */
  readonly uses?: 'commit' | 'release';
}

/**
 * Whether nothing is lost when a change comes a little later: the answer was sent, and the store
 * has the mark that its bytes left. A death before it leaves what a death before the last byte
 * does.
 */
function mayWait({ seen }: Advance | Note, { to }: Change): boolean {
  return to === 'delivered' && seen?.sending === 'begun';
}

function changeOfState({ to, dropReceipt }: Advance): Change {
  const uses = ENDS_USES[to];
  return {
    from: sourcesOf(to),
    to,
    final: isFinal(to),
    failedDelivery: to === 'undelivered',
    stampSettled: to === 'settled',
    required: REQUIRED[to],
    forget: FORGOTTEN_IN[to] ?? {},
    retentionMs: retentionOf(to),
    ...(dropReceipt === undefined ? {} : { dropReceipt }),
    ...(to === 'refused' ? { unpaid: MOST_UNPAID } : {}),
    ...(uses === undefined ? {} : { uses }),
  };
}

function changeInPlace({ facts = {} }: Note): Change {
  const isRefused = facts.bought !== undefined;
  return {
    from: notableIn(facts),
    final: isRefused,
    // Listed anew: the list is in the order of the last changes.
    ...(isRefused ? { unpaid: MOST_UNPAID } : {}),
    failedDelivery: false,
    stampSettled: false,
    required: [],
    forget: {},
    retentionMs: RECORD_RETENTION_MS,
  };
}

/** What change.lua looks at in every record. */
const GUARDS = ['owner', 'fence', 'step', 'state', 'validBefore', 'tries'];

/**
 * A command as change.lua takes it: its plan, and the arguments behind it.
 * @throws LedgerCorruption, RangeError before anything is written
 */
function changePlan(command: Advance | Note, change: Change) {
  const { payId, owner, fence, step, seen, unchanged, leaseMs, againMs = 0, facts = {}, keeping, receipt } = command;
  const { events = [] } = command;
  assertLease(leaseMs);
  assertPause(againMs);
  assertFacts(change.to, facts);
  const kept = keeping && keptForm(keeping);
  const uses = change.uses === undefined ? [] : ['mandate'];
  const worked = change.unpaid === undefined ? [] : ['answered'];
  const held = { payId, owner, fence, step, seen: seen?.step, unchanged, leaseMs, againMs, facts };
  const carried = { keepMs: kept?.keepMs, receiptId: receipt?.id, events: events.length };
  return {
    plan: {
      ...held,
      ...change,
      ...carried,
      reads: [...GUARDS, ...change.required, ...Object.keys(change.forget), ...uses, ...worked],
    },
    rest: [kept?.bytes ?? '', receipt === undefined ? '' : JSON.stringify(receipt), ...events.map(eventJson)],
  };
}

/** The terms of a new record as a hash takes them; whether the token counts, the script finds. */
function fieldsOf({ tokenDigest: _decided, ...terms }: PaymentTerms): readonly string[] {
  return Object.entries(terms).flatMap(([name, value]) => [name, String(value)]);
}

/**
 * An answer to keep, as change.lua takes it; without bytes the one that is kept stays for that
 * time. @throws RangeError a bug of the caller
 */
function keptForm(keeping: Keeping): { readonly keepMs: number; readonly bytes: Buffer | '' } {
  assertKeeping(keeping);
  const { answer, forMs } = keeping;
  if (answer === undefined) return { keepMs: forMs, bytes: '' };
  const { status, headers, body } = answer;
  return { keepMs: forMs, bytes: Buffer.concat([Buffer.from(JSON.stringify({ status, headers })), SEPARATOR, body]) };
}

/** @throws LedgerCorruption */
function keptFrom(bytes: Buffer): KeptAnswer {
  const end = bytes.indexOf(SEPARATOR);
  if (end < 0) throw new LedgerCorruption('the kept answer has no head');
  const { status, headers } = headOf(bytes.toString('utf8', 0, end));
  return { status, headers, body: new Uint8Array(bytes.subarray(end + SEPARATOR.length)) };
}

/** @throws LedgerCorruption */
function headOf(json: string): Pick<KeptAnswer, 'status' | 'headers'> {
  try {
    return JSON.parse(json) as Pick<KeptAnswer, 'status' | 'headers'>;
  } catch {
    throw new LedgerCorruption('the head of the kept answer is no JSON');
  }
}

/** @throws LedgerCorruption, StoreError */
async function readRecord(redis: RedisClient, keys: RedisKeys, payId: string): Promise<PaymentRecord | undefined> {
  const fields = Object.entries(await answered(redis.hgetall(keys.payment(payId))));
  return fields.length === 0 ? undefined : recordFrom(fields);
}

/** `PaymentLedger.due`, by the store's clock. @throws StoreError */
function dueRecords(
  redis: RedisClient,
  keys: RedisKeys,
  limit: number,
  withinMs: number,
): Promise<readonly PaymentRecord[]> {
  return recordsOf(redis, keys, keys.open, limit, async (offset) => {
    const [clock, listed] = parts(await run(redis, DUE, { keys: [keys.open], plan: { offset, limit, withinMs } }));
    // Between the two reads an attempt may have begun to work on it.
    return { ids: parts(listed).map(String), isMeant: ({ dueAt }) => dueAt <= Number(clock) };
  });
}

/** Unpaid work, the latest first. @throws StoreError */
function unpaidRecords(redis: RedisClient, keys: RedisKeys, limit: number): Promise<readonly PaymentRecord[]> {
  return recordsOf(redis, keys, keys.unpaid, limit, async (offset) => {
    const page = redis.zrange(keys.unpaid, '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', offset, limit);
    return { ids: await answered(page), isMeant: ({ state }) => state === 'refused' };
  });
}

/**
 * Reads the records of a list, in its order, until there are enough. Damaged ones are skipped, so
 * that they do not hide all others; `read` throws for them.
 */
async function recordsOf(
  redis: RedisClient,
  keys: RedisKeys,
  list: string,
  limit: number,
  pageAt: (offset: number) => Promise<{
    readonly ids: readonly string[];
    readonly isMeant: (record: PaymentRecord) => boolean;
  }>,
): Promise<readonly PaymentRecord[]> {
  const found = new Map<string, PaymentRecord>();
  for (let offset = 0; found.size < limit; ) {
    const { ids, isMeant } = await pageAt(offset);
    const entries = await Promise.all(ids.map((payId) => entryOf(redis, keys, list, payId)));
    for (const entry of entries) {
      if (entry !== 'gone') offset += 1;
      if (typeof entry === 'object' && isMeant(entry) && found.size < limit) found.set(entry.payId, entry);
    }
    if (ids.length < limit) break;
  }
  return [...found.values()];
}

/** The record of an entry of a list. Records expire, entries do not: this forgets those. */
async function entryOf(
  redis: RedisClient,
  keys: RedisKeys,
  list: string,
  payId: string,
): Promise<PaymentRecord | 'damaged' | 'gone'> {
  try {
    const record = await readRecord(redis, keys, payId);
    if (record !== undefined) return record;
  } catch (thrown) {
    if (thrown instanceof LedgerCorruption) return 'damaged';
    throw thrown;
  }
  await run(redis, FORGET, { keys: [keys.payment(payId), list], plan: { payId } });
  return 'gone';
}
