/**
 * Admits checkout calls before a byte of their bodies is read, and before they leave anything in
 * the store (acp 13.6); the adapter asks it after the checks of the head.
 */

import type { Response } from 'express';
import type { Shedding } from '../../server/limits/load-shedder.ts';
import type { Slots } from '../../server/limits/load-shedding.ts';
import { busy } from './error.ts';

/** What decides whether a call is admitted. */
interface AdmissionParts {
  readonly gate: {
    readonly accepting: () => boolean;
    /** Counts a piece of work until the result is called: the process ends only then. */
    readonly begin: () => () => void;
  };
  /** Whether this call must be refused. */
  readonly shedding: Shedding;
  /** Of all calls, and of this adapter's. */
  readonly slots: readonly Slots[];
}

/** Admits a call; the result is to be called when its work has ended. */
export type Admission = (res: Response) => () => void;

/**
 * A call holds its slots until its connection is done *and* its work is: an exchange with the
 * backend goes on when the caller has left.
 * @throws AcpError service_unavailable
 */
export function createAdmission({ gate, shedding, slots }: AdmissionParts): Admission {
  return function admit(res) {
    if (!gate.accepting() || shedding() !== undefined) throw busy();
    const ends = [gate.begin(), ...slots.map((each) => each.takeFor(res)())];
    return () => {
      for (const end of ends) end();
    };
  };
}
