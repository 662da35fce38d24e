/** What happens to a simulated run at a point. */

import type { MerchantFault } from './merchant.ts';
import type { Wire } from './process.ts';
import type { RailFaults } from './rail.ts';

/**
 * What happens to a run at a point. `crash` and `pause` hit the process whose step it is, the
 * others a payment: the store loses its record or the last writes, or the payer uses the nonce
 * elsewhere.
 */
export type Blow =
  | { readonly kind: 'crash' }
  | { readonly kind: 'pause'; readonly ms: number }
  | { readonly kind: 'lose' }
  | { readonly kind: 'rollBack'; readonly ms: number }
  | { readonly kind: 'spend' };

/**
 * Everything that chance or a plan decides in a run. Asked in a fixed order, so that a seed is a
 * run.
 */
export interface Fate extends Wire, RailFaults {
  /** At a point, before it happens. */
  strike(label: string): Blow | undefined;
  /** Whether a request that had left arrives although its sender is dead or stands still. */
  leftAlready(): boolean;
  merchant(): MerchantFault;
  /** Whether the merchant cannot be reached when a call asks for a connection. */
  merchantAway(): boolean;
  /** Whether bytes that the operating system has are lost on the way to the buyer. */
  lineIsCut(): boolean;
  /** How long a buyer waits before it hangs up, milliseconds. */
  patienceMs(): number;
  /** Between the death of a process and the start of the next, milliseconds. */
  restartMs(): number;
  /** Between two looks of a reconciler, milliseconds. */
  roundMs(): number;
  /** From now on nothing goes wrong any more. */
  heal(): void;
}

/**
 * Labels that are no points of their own: looks of the background, whose loss is the same as a
 * pause of nobody.
 */
const BACKGROUND: ReadonlySet<string> = new Set(['due', 'look', 'renew']);

/** Whether to end a process here says something that the points around do not. */
export function isPoint(label: string): boolean {
  return !BACKGROUND.has(label);
}
