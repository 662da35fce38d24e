import fc from 'fast-check';
import type { Holder, PaymentState, PaymentTerms } from '../../src/payments/ledger/ledger.ts';
import { TRANSITIONS } from '../../src/payments/ledger/table.ts';

/** Leases that need no waiting: none, one that is over at once, one that no test lives to see end. Milliseconds. */
export const LEASE = { none: 0, short: 1, long: 600_000 } as const;

/** The authorizations of one run. */
export interface Subject {
  readonly requestId: string;
  readonly terms: (payment: number) => PaymentTerms;
  readonly payId: (payment: number) => string;
}

interface Sent {
  /** Which of the two authorizations. */
  readonly payment: number;
  readonly leaseMs: number;
  readonly twice: boolean;
}
interface Held extends Sent {
  readonly holder: Pick<Holder, 'owner' | 'fence'>;
  readonly step: string;
}
interface Facts {
  readonly transaction: boolean;
  readonly reason: string | undefined;
}

export type Command =
  | (Sent & { readonly kind: 'reserve'; readonly owner: string; readonly otherBind: boolean })
  | (Held &
      Facts & {
        readonly kind: 'advance';
        readonly to: PaymentState;
        readonly receipt: boolean;
        readonly serial: number;
      })
  | (Held & Facts & { readonly kind: 'note' })
  | (Held & { readonly kind: 'release' | 'discard' });

const OWNERS = ['ada', 'ben', 'eve'];
const STATES = Object.keys(TRANSITIONS) as PaymentState[];

const sent = {
  payment: fc.constantFrom(0, 0, 0, 1),
  leaseMs: fc.constantFrom(LEASE.none, LEASE.short, LEASE.long, LEASE.long),
  twice: fc.boolean(),
};
const held = {
  ...sent,
  // Mostly the first owner under the first fence, so that sequences get somewhere; the rest are latecomers.
  holder: fc.record({
    owner: fc.constantFrom('ada', 'ada', 'ada', 'ben', 'eve'),
    fence: fc.constantFrom(1, 1, 1, 2, 2, 3),
  }),
  step: fc.constantFrom(...Array.from({ length: 12 }, (_, i) => `step-${i}`)),
};
const learned = {
  transaction: fc.boolean(),
  reason: fc.option(fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }), { nil: undefined }),
};
const advance = {
  ...held,
  ...learned,
  kind: fc.constant('advance' as const),
  receipt: fc.boolean(),
  serial: fc.nat(999),
};

const one: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      ...sent,
      kind: fc.constant('reserve' as const),
      owner: fc.constantFrom(...OWNERS),
      otherBind: fc.constantFrom(false, false, false, true),
    }),
  },
  { weight: 4, arbitrary: fc.record({ ...advance, to: fc.constantFrom(...STATES) }) },
  { weight: 2, arbitrary: fc.record({ ...held, ...learned, kind: fc.constant('note' as const) }) },
  { weight: 1, arbitrary: fc.record({ ...held, kind: fc.constantFrom('release' as const, 'discard' as const) }) },
);

/** A whole life by one owner and what it may not do afterwards, so that late states are reached in every run of the suite; chance alone seldom gets there. */
const life: fc.Arbitrary<Command[]> = fc
  .tuple(
    fc.constantFrom<readonly PaymentState[]>(
      ['settling', 'refused'],
      ['settling', 'settled', 'delivered'],
      ['settling', 'settled', 'undelivered', 'delivered'],
      ['settling', 'settled', 'undelivered', 'undelivered', 'refundDue'],
    ),
    fc.record(advance),
    fc.constantFrom(0, 1),
  )
  .map(([path, common, payment]) => [
    { kind: 'reserve', payment, leaseMs: LEASE.long, twice: common.twice, owner: 'ada', otherBind: false },
    ...path.map((to, i): Command => {
      // Now and then the transaction is missing, which must be refused before it is written.
      const own = {
        payment,
        to,
        holder: { owner: 'ada', fence: 1 },
        step: `life-${i}`,
        transaction: to === 'settled' && common.serial > 100,
      };
      return { ...common, ...own };
    }),
    ...(['note', 'release', 'discard'] as const).map((kind): Command => {
      const { leaseMs, twice, reason } = common;
      const late = { payment, leaseMs, twice, holder: { owner: 'ada', fence: 1 }, step: `late-${kind}` };
      return kind === 'note' ? { ...late, kind, transaction: false, reason } : { ...late, kind };
    }),
  ]);

/** Random commands, cut into a life at a random place or on their own. */
export const commands: fc.Arbitrary<readonly Command[]> = fc.oneof(
  fc.array(one, { minLength: 4, maxLength: 24 }),
  fc
    .tuple(life, fc.array(one, { maxLength: 10 }), fc.array(one, { maxLength: 10 }), fc.nat(6))
    .map(([steps, between, afterwards, at]) => [...steps.slice(0, at), ...between, ...steps.slice(at), ...afterwards]),
);
