import type { Response } from 'express';
import type { Shedding } from '../../server/load-shedding/load-shedder.ts';
import type { Slots } from '../../server/load-shedding/slots.ts';
import { busy } from './error.ts';

/** What decides whether a call may come in. */
interface AdmissionParts {
  readonly gate: {
    readonly accepting: () => boolean;
    /** Counts a piece of work until the result is called: the process ends only then. */
    readonly begin: () => () => void;
  };
  /** Asked whether this call must be refused. */
  readonly shedding: Shedding;
  /** Of all calls, and of this adapter's. */
  readonly places: readonly Slots[];
}

/** Lets a call in; the result is to be called when its work has ended. */
export type Admission = (res: Response) => () => void;

/**
 * Admits calls before a byte of their bodies is read, and before they leave anything in the store
 * (acp 13.6). A call holds its places until its connection is done *and* its work is: what is sent
 * to a merchant goes on when the caller has left.
 * @throws AcpError service_unavailable
 */
export function createAdmission({ gate, shedding, places }: AdmissionParts): Admission {
  return function admit(res) {
    if (!gate.accepting() || shedding() !== undefined) throw busy();
    const leave = places.map((place) => {
      const hold = place.take();
      res.once('close', hold());
      return hold();
    });
    const ends = [gate.begin(), ...leave];
    return () => {
      for (const end of ends) end();
    };
  };
}
