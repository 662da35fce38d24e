/** The rows of a register in memory, and sample claims on it. */

import { randomUUID } from 'node:crypto';
import type {
  MandateClaim,
  OpenMandateState,
  OpenMandateUse,
  Recurrence,
  RegisterEpoch,
  RegisterRows,
} from '../../src/mandates/register.ts';
import type { StoredMandate } from '../../src/mandates/stored-mandate.ts';

/** The rows of a register in memory, and sample claims on it. */

/** The epoch of a register that never forgot a use. */
const FOREVER: RegisterEpoch = { born: 0, openFrom: 0 };

/** The rows of a register, open to specs. */
export interface MapRows extends RegisterRows {
  readonly onceIds: Map<string, number>;
  readonly states: Map<string, OpenMandateState>;
}

/** Without `epoch` nothing was ever forgotten; `null`: the register was emptied, epoch and all. */
export function mapRows(epoch: RegisterEpoch | null = FOREVER): MapRows {
  let since = epoch ?? undefined;
  const onceIds = new Map<string, number>();
  const states = new Map<string, OpenMandateState>();
  return {
    onceIds,
    states,
    usedUntil: (id) => onceIds.get(id),
    use: (id, untilMs) => void onceIds.set(id, untilMs),
    free: (id) => void onceIds.delete(id),
    open: (id) => states.get(id),
    write: (id, state) => void states.set(id, state),
    remove: (id) => void states.delete(id),
    epoch: () => since,
    begin(given) {
      since = given;
    },
  };
}

/** When samples are presented, unix seconds; a store's own clock differs. */
export const AT = 1_795_176_002;
/** How long samples are remembered, seconds: longer than any test. */
const REMEMBERED_S = 3_600;

/** A claim of a closed mandate and its checkout, under the open mandates in `open`. */
export function claimOf(name: string = randomUUID(), changes: Partial<MandateClaim> = {}): MandateClaim {
  const at = changes.at ?? AT;
  return { at, age: 0, once: [`m:${name}`, `j:${name}`], onceUntil: at + REMEMBERED_S, open: [], ...changes };
}

/** A use of an open mandate: once, or as `recurrence` allows. */
export function useOf(id: string, recurrence?: Partial<Recurrence>, until = AT + REMEMBERED_S): OpenMandateUse {
  if (recurrence === undefined) return { id, until, recurrence: undefined };
  return { id, until, recurrence: { ...ANY, ...recurrence } };
}

const ANY: Recurrence = { units: '1', budgetUnits: '100', maxOccurrences: undefined, periodStart: undefined };

/** `PaymentTerms.mandate` with this claim. */
export function mandateText(claim: MandateClaim): string {
  return JSON.stringify({
    method: 'ap2',
    mode: claim.open.length === 0 ? 'direct' : 'autonomous',
    reference: 'K-m8mHXUfiJUI3Tpv3VuP-CcDgjq6cADvt5BI6MJIlM',
    referenceSdHash: '7PI_s5Z3JZoyGfgXa0eXnRkYmF7sI4lVqWkQhJc0b1E',
    mandateIssuer: 'https://agents.trusty.example',
    checkoutIssuer: 'https://api.market-shop.example',
    checkoutId: 'mAkKeR_dRCC1NLaCSQYiYA',
    claim,
  } satisfies StoredMandate);
}
