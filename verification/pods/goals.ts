/** What must hold while injected pods are restarted. */

import type { Shown } from './scenarios.ts';

/** Of a merchant that is killed, each POST that it has in hand is lost: one for each buyer. */
const IN_HAND = 6;

/** The broken promises of a run; empty when it kept all. */
export function faults({ kind, failed, undelivered, slow, starts = 1, outlived = 0 }: Shown): readonly string[] {
  const wrong: string[] = [];
  const must = (holds: boolean, rule: string): void => void (holds || wrong.push(rule));
  if (kind === 'rolling') {
    must(failed === 0, 'no call fails');
    must(slow > 0 && outlived > 0, 'some call outlives the window, or the run shows nothing');
  }
  if (kind === 'rolling' || kind === 'restart') must(undelivered === 0, 'what is paid is delivered');
  if (kind === 'control') must(undelivered > 0, 'without /release something paid is not delivered');
  if (kind === 'kill') must(undelivered <= IN_HAND * (starts - 1), 'only what the merchant had in hand is lost');
  return wrong;
}
