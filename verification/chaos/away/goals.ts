/** What must hold while a backend comes and goes. */

import type { Shown } from './scenarios.ts';

/** Delivered of all calls to a merchant who is well. */
const HEALTHY_SHARE = 0.999;
/**
 * From his return to the next delivery: two seconds, a settlement, and a machine that does other
 * things.
 */
const RECOVERY_MS = 4_000;
/** Of a period of the breaker, where the merchant takes requests and answers none. */
const LOST_A_PERIOD = 3;
/** Calls under way when a merchant falls silent have been paid already. */
const UNDER_WAY = 6;

/** What a scenario did not keep of what is promised, in words; empty when all is well. */
export function faults(shown: Shown): readonly string[] {
  const { scenario, calls, delivered, settled, settledAndUndelivered, inHand, lost, opened, recoveryMs = 0 } = shown;
  const wrong: string[] = [];
  const must = (holds: boolean, rule: string): void => void (holds || wrong.push(rule));
  must(lost === 0, 'what was paid is collected or on the list of refunds');
  must(recoveryMs <= RECOVERY_MS, 'sells again within two seconds of the return');
  if (scenario === 'healthy') must(delivered >= calls * HEALTHY_SHARE, 'delivers 99.9 % when the merchant is well');
  else if (scenario === 'down') must(settled === 0, 'takes no money at all');
  else if (scenario.startsWith('away')) must(settledAndUndelivered === inHand, 'delivers all that is paid');
  else must(settledAndUndelivered <= UNDER_WAY + LOST_A_PERIOD * opened, 'at most three a period of the breaker');
  return wrong;
}
