/** Stops new payments while the chain's node or our clock is wrong; begun ones stay open. */

import type { ChainFault, ChainFaultKind } from '../../rail.ts';
import type { ChainHealth } from '../chain/chain-health.ts';
import type { PaymentRail } from '../wire/types.ts';
import type { Candidate, Examination } from './verify.ts';

/** Logs when a fault begins and when it ends. */
interface FaultLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/**
 * The rail that begins nothing new during a fault. `verify` gives no verdict, so the buyer comes
 * again and nothing was taken. For a payment that was begun only what the chain shows counts; what
 * it does not show proves nothing.
 */
export function guardRail(health: ChainHealth, rail: PaymentRail, log: FaultLog): PaymentRail {
  const report = faultReporter(log);
  return {
    ...rail,
    async verify(proof, offer) {
      const fault = health.fault();
      return fault === undefined ? rail.verify(proof, offer) : { kind: 'unavailable', cause: fault.cause };
    },
    async settle(...args) {
      const ended = health.settling();
      try {
        return await rail.settle(...args);
      } finally {
        ended();
      }
    },
    async reconcile(...args) {
      const shown = await rail.reconcile(...args);
      const fault = shown.kind === 'open' ? health.fault() : undefined;
      return fault === undefined ? shown : { kind: 'unknown', cause: fault.cause };
    },
    async check() {
      const [found] = await Promise.all([rail.check(), health.askAgain()]);
      const faults = health.faults();
      report(faults);
      const causes = faults.map(({ kind, cause }) => `${kind}: ${cause}`);
      if (causes.length === 0) return found;
      return { found: 'unreachable', cause: [...(found === undefined ? [] : [found.cause]), ...causes].join('; ') };
    },
    chainState: () => ({ faults: health.faults(), headAgeMs: health.headAgeMs() }),
  };
}

/** Logs what has changed since the last call. */
function faultReporter(log: FaultLog): (faults: readonly ChainFault[]) => void {
  let known: readonly ChainFault[] = [];
  const has = (faults: readonly ChainFault[], kind: ChainFaultKind): boolean => faults.some((one) => one.kind === kind);
  return function report(faults) {
    for (const { kind, cause } of faults)
      if (!has(known, kind))
        log.warn({ fault: kind, cause }, 'the chain node cannot be believed: nothing new is taken');
    for (const { kind } of known)
      if (!has(faults, kind)) log.info({ fault: kind }, 'the chain node can be believed again');
    known = faults;
  };
}

/**
 * The local checks without the window while our clock is wrong: the window would refuse every
 * proof, or accept one that has ended. The proof then reaches the rail, which gives no verdict in
 * that time; 402 would have the buyer sign again and again.
 */
export function guardExaminer(
  health: Pick<ChainHealth, 'faults'>,
  examine: (candidate: Candidate) => Examination,
): (candidate: Candidate) => Examination {
  return function examineGuarded(candidate) {
    const examination = examine(candidate);
    const isByClock = examination.refusal?.step === 'window' && health.faults().some(({ kind }) => kind === 'clock');
    return isByClock ? { ...examination, refusal: undefined } : examination;
  };
}
