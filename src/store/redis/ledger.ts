import type { Redis } from 'ioredis';
import type { EventDraft } from '../../events/event.ts';
import { assertLease, assertTerms, REQUIRED } from '../../payments/ledger/invariants.ts';
import type { Advance, Holder, PaymentFacts, PaymentLedger, PaymentState } from '../../payments/ledger/ledger.ts';
import { RECORD_RETENTION_MS, WORK_RETENTION_MS } from '../../payments/ledger/retention.ts';
import {
  DELIVERING_STATES,
  FORGOTTEN,
  isFinal,
  notableIn,
  OPEN_STATES,
  sourcesOf,
} from '../../payments/ledger/table.ts';
import { eventJson } from '../event-json.ts';
import type { StoreLimits } from '../store.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';
import { advancedOf, parts, recordFrom, reservationOf, standingOf } from './reply.ts';
import { DISCARD, RESERVE, WRITE } from './script.ts';

/** The ledger in Redis: each method is one script, and each script knows the table only as the lists it is given. */
export function redisLedger(redis: Redis, keys: RedisKeys, limits: StoreLimits): PaymentLedger {
  const { eventsMaxLength, receiptsMaxLength } = limits;
  const shared = { retentionMs: RECORD_RETENTION_MS, eventsMaxLength, receiptsMaxLength };

  const write = async (held: Holder, change: Change) => {
    assertLease(change.leaseMs);
    const { payId, owner, fence, step } = held;
    const plan = { ...shared, payId, owner, fence, step, ...change };
    const touched = [keys.payment(payId), keys.open, keys.events, keys.receipts, keys.receiptIndex];
    return advancedOf(await WRITE(redis, touched, plan));
  };

  return {
    async reserve({ terms: given, owner, leaseMs }) {
      assertLease(leaseMs);
      const terms = assertTerms(given);
      const { payId } = terms;
      const states = { openStates: OPEN_STATES, deliveringStates: DELIVERING_STATES };
      const plan = { ...shared, workRetentionMs: WORK_RETENTION_MS, payId, owner, leaseMs, terms, ...states };
      return reservationOf(await RESERVE(redis, [keys.payment(payId), keys.open], plan));
    },
    advance: (command) => write(command, movement(command)),
    note: (held, facts, leaseMs) => write(held, inPlace(facts, leaseMs)),
    release: (held) => write(held, inPlace({}, 0)),
    async discard({ payId, owner, fence }, events) {
      const plan = { ...shared, payId, owner, fence, events: events.map(eventJson) };
      const [kind, detail] = parts(await DISCARD(redis, [keys.payment(payId), keys.open, keys.events], plan));
      if (kind === 'gone') return { kind };
      const standing = standingOf(kind, detail);
      return standing.kind === 'lost' ? { kind: 'gone' } : standing;
    },
    async read(payId) {
      const fields = Object.entries(await answered(redis.hgetall(keys.payment(payId))));
      return fields.length === 0 ? undefined : recordFrom(fields);
    },
  };
}

/** What write.lua is told beside the holder. */
interface Change {
  readonly from: readonly PaymentState[];
  readonly to?: PaymentState;
  readonly final: boolean;
  readonly leaseMs: number;
  readonly facts: PaymentFacts;
  readonly failedDelivery: boolean;
  readonly stampSettled: boolean;
  readonly required: readonly string[];
  /** Replaced where a record has them. */
  readonly forget: Readonly<Record<string, string>>;
  readonly receipt?: { readonly id: string; readonly json: string };
  readonly events: readonly string[];
}

function movement({ to, leaseMs, facts = {}, receipt, events }: Advance): Change {
  return {
    from: sourcesOf(to),
    to,
    final: isFinal(to),
    leaseMs,
    facts,
    failedDelivery: to === 'undelivered',
    stampSettled: to === 'settled',
    required: REQUIRED[to],
    forget: isFinal(to) ? FORGOTTEN : {},
    ...(receipt === undefined ? {} : { receipt: receiptFields(receipt) }),
    events: events.map((event: EventDraft) => eventJson(event)),
  };
}

function receiptFields(receipt: { readonly id: string }) {
  return { id: receipt.id, json: JSON.stringify(receipt) };
}

function inPlace(facts: PaymentFacts, leaseMs: number): Change {
  return {
    from: notableIn(facts),
    final: false,
    leaseMs,
    facts,
    failedDelivery: false,
    stampSettled: false,
    required: [],
    forget: {},
    events: [],
  };
}
