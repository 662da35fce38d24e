import { SWEPT_AT_ONCE } from '../../mandates/register/register-table.ts';
import {
  assertFacts,
  assertLease,
  assertNewToken,
  assertPause,
  assertTerms,
  REQUIRED,
} from '../../payments/ledger/invariants.ts';
import type { Advance, Advanced, Note, PaymentLedger, PaymentState } from '../../payments/ledger/ledger.ts';
import { ENDS_USES } from '../../payments/ledger/mandate-use.ts';
import { MAX_REFUSALS, SWEPT_REFUSALS } from '../../payments/ledger/refusals.ts';
import { RECORD_RETENTION_MS, retentionOf, WORK_RETENTION_MS } from '../../payments/ledger/retention.ts';
import { FORGOTTEN_IN } from '../../payments/ledger/table.ts';
import { DELIVERING_STATES, isFinal, notableIn, OPEN_STATES, sourcesOf } from '../../payments/ledger/transitions.ts';
import type { Receipt } from '../../receipts/receipt.ts';
import { eventJson } from '../port/event-json.ts';
import { type StoreLimits, TRIMMED_AT_ONCE } from '../port/store.ts';
import type { TrimCount } from '../port/trim-count.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import { keptForm, keptFrom } from './kept.ts';
import { bookKeys, type RedisKeys, registerKeys } from './keys.ts';
import { runReplicated } from './replication.ts';
import { advancedOf, parts, reservationOf, standingOf, trimmedIn } from './reply.ts';
import { DISCARD, RENEW, RESERVE, run, WRITE } from './script.ts';
import { dueRecords, readRecord } from './work-list.ts';

/**
 * The ledger in Redis: each write is one script, and each script knows the table only as the lists it is given. `replicated`: a
 * connection of its own on which the writes around a settlement wait for a replica; absent, they do not.
 */
export function redisLedger(
  { redis, replicated }: { readonly redis: RedisClient; readonly replicated?: RedisClient | undefined },
  keys: RedisKeys,
  limits: StoreLimits,
  trimmed: TrimCount,
): PaymentLedger {
  const { eventsMaxLength, receiptsMaxLength } = limits;
  const bounds = { eventsMaxLength, receiptsMaxLength, trimmedAtOnce: TRIMMED_AT_ONCE };
  const shared = { retentionMs: RECORD_RETENTION_MS, ...bounds };

  const register = registerKeys(keys);

  const write = async (command: Advance | Note, change: Change): Promise<Advanced> => {
    const { payId, owner, fence, step, leaseMs, againMs = 0, facts = {}, keeping } = command;
    assertLease(leaseMs);
    assertPause(againMs);
    assertFacts(change.to, facts);
    const kept = keeping && keptForm(keeping);
    const events = (command.events ?? []).map(eventJson);
    const held = { payId, owner, fence, step, leaseMs, againMs, facts, events };
    const plan = { ...shared, ...held, ...change, keepMs: kept?.keepMs };
    const payment = [keys.payment(payId), keys.open, keys.events, keys.kept(payId), ...bookKeys(keys)];
    const touched = change.uses === undefined ? payment : [...payment, ...register];
    const execution = { keys: touched, plan, bytes: kept?.bytes };
    const waits = replicated !== undefined && change.to !== undefined && WAITING.has(change.to);
    const reply = await (waits ? runReplicated(replicated, WRITE, execution) : run(redis, WRITE, execution));
    trimmed.add({ length: trimmedIn(reply) });
    return advancedOf(reply);
  };

  return {
    async reserve({ terms: given, owner, leaseMs, longestMs, token, proof }) {
      assertLease(leaseMs);
      assertNewToken(token);
      assertLease(longestMs ?? 0);
      const terms = assertTerms(given);
      const { payId } = terms;
      const states = { openStates: OPEN_STATES, deliveringStates: DELIVERING_STATES };
      const sweep = { workRetentionMs: WORK_RETENTION_MS, sweptAtOnce: SWEPT_AT_ONCE };
      const plan = { ...shared, ...sweep, payId, owner, leaseMs, longestMs, proof, terms, token, ...states };
      const payment = [keys.payment(payId), keys.open, keys.refusals];
      const execution = {
        keys: [
          ...payment,
          ...(terms.mandate === undefined ? [] : register),
          ...(token?.kind === 'issued' ? [keys.token(token.id)] : []),
        ],
        plan,
      };
      const reservation = reservationOf(await run(redis, RESERVE, execution));
      // Who takes an uncertain settlement over may send it: that it is `settling` must be safe first, whoever wrote it.
      if (replicated === undefined || reservation.kind !== 'granted' || reservation.record.state !== 'settling')
        return reservation;
      return reservationOf(await runReplicated(replicated, RESERVE, execution));
    },
    advance: async (command) => write(command, movement(command)),
    note: async (command) => write(command, inPlace(command)),
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
      const plan = { ...shared, ...room, payId, owner, fence, events: events.map(eventJson), refusal };
      const touched = [keys.payment(payId), keys.open, keys.events, keys.refusals, keys.refusalEnds, ...register];
      const [kind, detail] = parts(await run(redis, DISCARD, { keys: touched, plan }));
      if (kind === 'gone') return { kind };
      const standing = standingOf(kind, detail);
      return standing.kind === 'lost' ? { kind: 'gone' } : standing;
    },
    read: (payId) => readRecord(redis, keys, payId),
    async kept(payId) {
      const bytes = await answered(redis.getBuffer(keys.kept(payId)));
      return bytes === null ? undefined : keptFrom(bytes);
    },
    due: (limit) => dueRecords(redis, keys, limit),
  };
}

/**
 * Between the first two money moves: a failover that forgot one of them would forget a payment. One that forgot a withdrawal would have
 * it settled for a buyer who was told that nothing was taken.
 */
const WAITING: ReadonlySet<PaymentState> = new Set(['settling', 'settled', 'withdrawn']);

/** What write.lua is told of the table beside what the holder said. */
interface Change {
  readonly from: readonly PaymentState[];
  readonly to?: PaymentState;
  readonly final: boolean;
  readonly failedDelivery: boolean;
  readonly stampSettled: boolean;
  readonly required: readonly string[];
  /** Replaced where a record has them. */
  readonly forget: Readonly<Record<string, string>>;
  readonly receipt?: { readonly id: string; readonly json: string };
  readonly dropReceipt?: string;
  readonly retentionMs?: number;
  /** What becomes of the uses of a mandate, where a record has one. */
  readonly uses?: 'commit' | 'release';
}

function movement({ to, receipt, dropReceipt }: Advance): Change {
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
    ...(receipt === undefined ? {} : { receipt: receiptFields(receipt) }),
    ...(dropReceipt === undefined ? {} : { dropReceipt }),
    ...(uses === undefined ? {} : { uses }),
  };
}

function receiptFields(receipt: Receipt) {
  return { id: receipt.id, json: JSON.stringify(receipt) };
}

function inPlace({ facts = {}, receipt }: Note): Change {
  return {
    from: notableIn(facts),
    final: false,
    failedDelivery: false,
    stampSettled: false,
    required: [],
    forget: {},
    ...(receipt === undefined ? {} : { receipt: receiptFields(receipt) }),
  };
}
