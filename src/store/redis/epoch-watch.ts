import type { RegisterEpoch } from '../../mandates/register/register.ts';
import type { StoreLog } from './connection.ts';

/**
 * What this gateway knows of the epoch of the register: only who has seen one before can tell a store that lost it from one that is new.
 * Asked for with every readiness check and at every connection.
 */
export interface EpochWatch {
  /** What the script goes by: the birth that was seen before, milliseconds as text, and what an empty register begins with. */
  readonly plan: () => { readonly known?: string; readonly first?: RegisterEpoch };
  /** Notes what stands there now, and tells the log of a loss. */
  readonly saw: (born: string) => void;
}

/** `first`: undefined for a register that begins now. */
export function watchEpoch(first: RegisterEpoch | undefined, log: StoreLog | undefined): EpochWatch {
  let known: string | undefined;
  return {
    plan: () => ({ ...(known === undefined ? {} : { known }), ...(first === undefined ? {} : { first }) }),
    saw(born) {
      // An operator who accepts what is older sets it back: that is no loss.
      if (known !== undefined && Number(born) > Number(known)) log?.warn({ since: iso(born) }, LOST);
      known = born;
    },
  };
}

const LOST =
  'redis lost its data: checkouts and open mandates from before are refused, they may have been used; ' +
  'openFrom 0 in the hash ap2:epoch accepts the open mandates again';

function iso(milliseconds: string): string {
  return new Date(Number(milliseconds)).toISOString();
}
