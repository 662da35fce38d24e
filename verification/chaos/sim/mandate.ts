/** Mandates and their register in the simulation. */

import { claimOf, useOf } from '../../../spec/mandates/claims.ts';
import type { AcceptedMandate, Reason, RefusedMandate } from '../../../src/mandates/ap2/reasons.ts';
import type { MandateService } from '../../../src/mandates/ap2/verify.ts';
import type { OpenMandateState } from '../../../src/mandates/register.ts';
import type { PaymentState } from '../../../src/payments/ledger/ledger.ts';
import type { BuyerPlan, Purchase } from './buyer.ts';
import type { Reply } from './merchant.ts';
import type { SimStore } from './store.ts';

/** Longer than any run, seconds. */
const FOR_EVER_S = 30 * 24 * 60 * 60;
/** The one open mandate under which everything is bought, a unit each. */
const OPEN = 'open';
const MUCH = { units: '1', budgetUnits: '1000000' };

/** How long a presentation passes its checks, milliseconds: as long as its checkout. */
const LIFE_MS = 300_000;

/**
 * A mandate as a request carries it, unsigned: the simulation does not test signatures. `since`:
 * milliseconds of the simulated clock.
 */
interface Carried {
  readonly name: string;
  readonly input: string;
  readonly since: number;
}

/**
 * The mandates of the buyers: one for each purchase, kept for a new payment, and made again when it
 * is refused.
 */
export class Mandates {
  readonly #held = new Map<Purchase, Carried>();
  readonly #now: () => number;
  readonly #wanted: boolean;
  #made = 0;

  constructor(now: () => number, wanted: boolean) {
    this.#now = now;
    this.#wanted = wanted;
  }

  /** A client that only found a proof has its mandate too, and makes none. */
  broughtBy({ purchase, mayPay, input }: BuyerPlan): string | undefined {
    if (!this.#wanted) return undefined;
    const held = this.#held.get(purchase) ?? (mayPay ? this.#make(purchase, input) : undefined);
    return held && JSON.stringify(held);
  }

  answered({ purchase, mayPay }: BuyerPlan, reply: Reply): void {
    if (mayPay && reply.kind === 'failed' && reply.code.startsWith('AUTHORIZATION_')) this.#held.delete(purchase);
  }

  #make(purchase: Purchase, input: string): Carried {
    this.#made += 1;
    const made = { name: `mandate-${this.#made}`, input, since: Math.floor(this.#now()) };
    this.#held.set(purchase, made);
    return made;
  }
}

/** The checks of a mandate without its cryptography: its time window and its purchase. */
export function simMandates(now: () => number): MandateService {
  return {
    freeCurrency: 'XXX',
    challenge: () => '{}',
    accepted: () => '',
    rejected: () => '',
    verify: async (carried, { input }) => {
      if (carried.kind !== 'text') return refused('mandate_required');
      const mandate = JSON.parse(carried.value) as Carried;
      if (now() - mandate.since >= LIFE_MS) return refused('checkout_expired');
      return mandate.input === input['for'] ? accepted(mandate) : refused('input_mismatch');
    },
    register: {
      reserve: () => Promise.reject(new Error('nothing is free here')),
      finish: () => Promise.reject(new Error('nothing is free here')),
    },
  };
}

function refused(reason: Reason): RefusedMandate {
  return { kind: 'refused', reason, reference: undefined, issuer: undefined };
}

function accepted({ name, since }: Carried): AcceptedMandate {
  const at = since / 1_000;
  const until = at + FOR_EVER_S;
  return {
    kind: 'accepted',
    mode: 'autonomous',
    issuer: 'agents',
    mandateId: name,
    checkoutIssuer: 'shop',
    checkoutId: name,
    reference: name,
    referenceSdHash: name,
    claim: claimOf(name, { at, onceUntil: until, open: [useOf(OPEN, MUCH, until)] }),
  };
}

/** What is wrong in the register: the uses of a mandate must be those of its payments. */
export function wrongUses(store: SimStore): string | undefined {
  const held = [...store.records.values()].filter(({ mandate, state }) => mandate !== undefined && state !== 'refused');
  if (new Set(held.map(({ mandate }) => mandate)).size < held.length) return 'one mandate, two payments';
  const paid = held.filter(({ state }) => PAID.has(state)).length;
  const open = held.length - paid;
  const { spent, pending, uses, puses } = store.openMandate(OPEN) ?? NONE;
  const found = [spent, pending, uses, puses].join(' ');
  return found === [paid, open, paid, open].join(' ')
    ? undefined
    : `the mandate has ${found}, its payments are ${paid} paid and ${open} open`;
}

const PAID: ReadonlySet<PaymentState> = new Set(['settled', 'delivered', 'undelivered', 'refundDue']);
const NONE: Pick<OpenMandateState, 'spent' | 'pending' | 'uses' | 'puses'> = {
  spent: '0',
  pending: '0',
  uses: 0,
  puses: 0,
};
