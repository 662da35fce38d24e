/** What must hold while a backend comes and goes. */

import type { Shown } from './scenarios.ts';

/** Share of calls that a healthy backend delivers. */
const HEALTHY_SHARE = 0.999;
/**
 * From the backend's return to the next delivery, milliseconds: two seconds, a settlement, and a
 * margin for a busy machine.
 */
const RECOVERY_MS = 4_000;
/**
 * Calls that a period of the breaker may lose, where the backend takes requests and answers none.
 */
const LOST_A_PERIOD = 3;
/** Calls that are paid and under way when the backend stops. */
const UNDER_WAY = 6;

/** The broken promises of a scenario; empty when it kept all. */
export function faults(shown: Shown): readonly string[] {
  const {
    scenario,
    calls,
    delivered,
    refusedBeforeMoney,
    settled,
    settledAndUndelivered,
    inHand,
    lost,
    opened,
    recoveryMs = 0,
  } = shown;
  const wrong: string[] = [];
  const must = (holds: boolean, rule: string): void => void (holds || wrong.push(rule));
  must(lost === 0, 'what was paid is collected or on the list of refunds');
  must(recoveryMs <= RECOVERY_MS, 'delivers again within two seconds of the return');
  if (scenario === 'healthy') must(delivered >= calls * HEALTHY_SHARE, 'delivers 99.9 % when the backend is healthy');
  else if (scenario === 'down') must(settled === 0, 'takes no money at all');
  else if (scenario.startsWith('away')) must(settledAndUndelivered === inHand, 'delivers all that is paid');
  else if (scenario.startsWith('restarts')) {
    must(settledAndUndelivered === 0, 'leaves nothing undelivered that is paid');
    must(delivered + refusedBeforeMoney === calls, 'fails no call');
  } else must(settledAndUndelivered <= UNDER_WAY + LOST_A_PERIOD * opened, 'at most three a period of the breaker');
  return wrong;
}
