import fc from 'fast-check';
import type { Evidence, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { TRANSITIONS } from '../../../src/payments/ledger/transitions.ts';

/** Times, milliseconds: a bug, none, over at the next step, longer than any pause. */
export const SPAN = { wrong: -1, none: 0, short: 1, long: 600_000 } as const;
/** Who writes: the owner of the record, the owner before, another attempt, or a later fence. */
export type Writer = 'owner' | 'former' | 'stranger' | 'later';

interface Sent {
  readonly leaseMs: number;
}
interface Held extends Sent {
  readonly writer: Writer;
  readonly step: string;
}
/** Which record a write says it has seen: none, the last one, or one that was never written. */
export type Seen = 'none' | 'last' | 'wrong';

interface Written extends Held {
  readonly seen: Seen;
  readonly unchanged: boolean;
  readonly againMs: number | undefined;
  /** `fitting`: such as the change of state wants, none where it wants none. */
  readonly evidence: Evidence | 'fitting' | undefined;
  readonly transaction: boolean;
  readonly rawTransaction: boolean;
  readonly reason: string | undefined;
  readonly recovered: boolean;
  readonly sending: 'begun' | 'ended' | undefined;
  /** Bytes of an answer that left. */
  readonly sent: number | undefined;
  /** A buyer of its answer, where a refused record may be told one. */
  readonly bought: boolean;
  readonly key: boolean;
  readonly dropReceipt: boolean;
  /** Without a text: what is kept already. */
  readonly keeping: { readonly text: string | undefined; readonly forMs: number } | undefined;
}

/** A command before it is known whom the record belongs to: `callOf` makes it one. */
export type Command =
  | (Sent & {
      readonly kind: 'reserve';
      readonly owner: string;
      readonly otherBind: boolean;
      readonly key: 'none' | 'first' | 'other';
      readonly longestMs: number | undefined;
      readonly proof: 'none' | 'good' | 'forged';
      /** `stale`: no new record takes it; `malformed`: a bug of the caller. */
      readonly token: 'none' | 'first' | 'other' | 'stale' | 'stored' | 'malformed';
      readonly mandate: boolean;
    })
  | (Written & {
      readonly kind: 'advance';
      readonly to: PaymentState;
      readonly receipt: boolean;
      readonly serial: number;
    })
  | (Written & {
      readonly kind: 'note';
      readonly events: boolean;
      readonly receipt: boolean;
      readonly serial: number;
    })
  | (Held & { readonly kind: 'renew' })
  | (Held & {
      readonly kind: 'discard';
      readonly refusal: { readonly proof: 'good' | 'forged'; readonly forMs: number } | undefined;
    });

const STATES = Object.keys(TRANSITIONS) as PaymentState[];
const EVIDENCE: readonly Evidence[] = ['operator', 'logs', 'claim', 'expired', 'elsewhere', 'unsent', 'unclaimed'];

/** True once in `n` times. */
const rarely = (n: number) => fc.nat(n - 1).map((drawn) => drawn === n - 1);

/** One of these, and now and then what no caller may ask for. */
const span = (...usual: readonly number[]) =>
  fc.oneof({ weight: 50, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: fc.constant(SPAN.wrong) });

const sent = {
  leaseMs: span(SPAN.none, SPAN.short, SPAN.long, SPAN.long),
};
const held = {
  ...sent,
  // Mostly the owner, so that sequences advance.
  writer: fc.constantFrom<Writer>('owner', 'owner', 'owner', 'owner', 'owner', 'former', 'stranger', 'later'),
  // Few enough that a new command sometimes has the token of an old one.
  step: fc.nat(29).map((n) => `step-${n}`),
};
const written = {
  ...held,
  seen: fc.constantFrom<Seen>('none', 'last', 'last', 'last', 'wrong'),
  unchanged: rarely(12),
  againMs: fc.option(span(SPAN.none, SPAN.short, SPAN.long), { nil: undefined }),
  evidence: fc.oneof(
    { weight: 6, arbitrary: fc.constant('fitting' as const) },
    { weight: 1, arbitrary: fc.constantFrom(...EVIDENCE, undefined) },
  ),
  transaction: rarely(3).map((missing) => !missing),
  rawTransaction: rarely(4),
  reason: fc.option(fc.string({ unit: 'binary', maxLength: 8 }), { nil: undefined }),
  recovered: rarely(8),
  sending: fc.constantFrom(undefined, undefined, 'begun' as const, 'ended' as const),
  sent: fc.option(fc.nat(9), { nil: undefined }),
  bought: rarely(6),
  key: rarely(8),
  dropReceipt: rarely(8),
  keeping: fc.option(
    fc.record({
      text: fc.option(fc.string({ unit: 'binary', maxLength: 8 }), { nil: undefined }),
      forMs: span(SPAN.none, SPAN.short, SPAN.long),
    }),
    { nil: undefined },
  ),
};
const advance = {
  ...written,
  kind: fc.constant('advance' as const),
  receipt: fc.boolean(),
  serial: fc.nat(999),
};
const reserve = {
  ...sent,
  kind: fc.constant('reserve' as const),
  owner: fc.constantFrom('ada', 'ben', 'eve'),
  otherBind: rarely(6),
  key: fc.constantFrom('none', 'first', 'first', 'other'),
  longestMs: fc.option(span(SPAN.short, SPAN.long), { nil: undefined }),
  proof: fc.constantFrom('none' as const, 'good' as const, 'good' as const, 'forged' as const),
  token: fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom('none', 'first', 'first', 'other', 'stale', 'stored') },
    { weight: 1, arbitrary: fc.constant('malformed' as const) },
  ),
  mandate: fc.boolean(),
};

const refusal = fc.option(
  fc.record({
    proof: fc.constantFrom('good' as const, 'forged' as const),
    forMs: fc.constantFrom(SPAN.none, SPAN.short, SPAN.long),
  }),
  { nil: undefined },
);

const one: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: fc.record(reserve) },
  { weight: 5, arbitrary: fc.record({ ...advance, to: fc.constantFrom(...STATES) }) },
  { weight: 3, arbitrary: fc.record({ ...advance, kind: fc.constant('note' as const), events: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ ...held, kind: fc.constant('renew' as const) }) },
  { weight: 1, arbitrary: fc.record({ ...held, kind: fc.constant('discard' as const), refusal }) },
);

/**
 * All steps of a payment, so that late states are reached in every run of the suite; random
 * commands alone seldom reach them.
 */
const life: fc.Arbitrary<Command[]> = fc
  .tuple(
    fc.constantFrom<readonly PaymentState[]>(
      ['settling', 'refused'],
      ['worked', 'refused'],
      ['worked', 'settling', 'refused'],
      ['worked', 'settling', 'settled', 'delivered'],
      ['worked', 'settling', 'withdrawn', 'settling', 'settled', 'undelivered', 'delivered'],
      ['settling', 'unresolved', 'settled', 'undelivered', 'delivered'],
      ['settling', 'unresolved', 'refused'],
      ['settling', 'settled', 'delivered'],
      ['settling', 'withdrawn', 'settling', 'settled', 'delivered'],
      ['settling', 'withdrawn', 'settling', 'withdrawn', 'settling'],
      ['settling', 'settled', 'undelivered', 'delivered'],
      ['settling', 'settled', 'undelivered', 'undelivered', 'refundDue'],
      ['settling', 'settled', 'undelivered', 'refundDue', 'refunding', 'refunding', 'refunded'],
    ),
    fc.array(fc.record(advance), { minLength: 7, maxLength: 7 }),
    fc.record(reserve),
  )
  .map(([path, drawn, first]) => [
    { ...first, otherBind: false },
    ...drawn.slice(0, path.length).flatMap((common, i): Command[] => {
      const to = path[i] ?? 'settling';
      const own = {
        ...common,
        to,
        writer: 'owner',
        seen: common.unchanged ? 'last' : common.seen,
        step: `life-${i}`,
        reason: common.reason ?? 'because',
      } as const;
      // Sometimes another attempt goes on, if the lease allows it.
      const heir: Command = { ...first, otherBind: false, owner: 'eve', leaseMs: common.leaseMs };
      return common.serial % 3 === 0 ? [heir, own] : [own];
    }),
  ]);

/** Random commands, alone or inserted at a random step of all steps of a payment. */
export const commands: fc.Arbitrary<readonly Command[]> = fc.oneof(
  fc.array(one, { maxLength: 16, size: 'max' }),
  fc
    .tuple(life, fc.array(one, { maxLength: 5 }), fc.array(one, { maxLength: 5 }), fc.nat(6))
    .map(([steps, between, afterwards, at]) => [...steps.slice(0, at), ...between, ...steps.slice(at), ...afterwards]),
);
