/** Which change of a payment may wait for others, so that one commit or one script makes them. */

import type { Advance } from '../../payments/ledger/ledger.ts';

/** How long it waits, milliseconds: its call keeps a slot of the process until then. */
export const LATER_MS = 10;

/**
 * Whether nothing is lost when a change comes a little later: the answer was sent, and the store
 * has the mark that its bytes left. A death before the change leaves what a death before the last
 * byte does.
 */
export function mayComeLater({ to, seen }: Pick<Advance, 'to' | 'seen'>): boolean {
  return to === 'delivered' && seen?.sending === 'begun';
}
