/** The faults of a simulated run. */

import type { MerchantFault } from './merchant.ts';
import type { Wire } from './process.ts';
import type { RailFaults } from './rail.ts';

/**
 * A fault at a point. `crash` and `pause` affect the process of the step, the others a payment: the
 * store loses everything or the last commits, or the payer uses the nonce elsewhere.
 */
export type PointFault =
  | { readonly kind: 'crash' }
  | { readonly kind: 'pause'; readonly ms: number }
  | { readonly kind: 'lose' }
  | { readonly kind: 'rollBack'; readonly ms: number }
  | { readonly kind: 'spend' };

/**
 * All that chance or a plan decides in a run. The order of the calls is fixed, so that a seed
 * repeats a run.
 */
export interface Fate extends Wire, RailFaults {
  /** At a point, before it happens. */
  pointFault(label: string): PointFault | undefined;
  /** Whether a request that had left arrives although its sender is dead or stands still. */
  leftAlready(): boolean;
  merchant(): MerchantFault;
  /** Whether the backend cannot be reached when a call asks for a connection. */
  merchantAway(): boolean;
  /** Whether bytes that the operating system has are lost on the way to the buyer. */
  lineIsCut(): boolean;
  /** How long a buyer waits before it disconnects, milliseconds. */
  patienceMs(): number;
  /** Between the death of a process and the start of the next, milliseconds. */
  restartMs(): number;
  /** Between two rounds of a reconciler, milliseconds. */
  roundMs(): number;
  /** How far a process that starts is off the store's clock, milliseconds. */
  clockErrorMs(): number;
  /** Ends all faults. */
  endFaults(): void;
}

/**
 * Labels that are no points of their own: readings in the background, whose loss changes nothing.
 */
const BACKGROUND: ReadonlySet<string> = new Set(['due', 'look', 'renew']);

/** Whether a crash here shows more than one at the points around it. */
export function isPoint(label: string): boolean {
  return !BACKGROUND.has(label);
}
