/** What a way of injection made of a pod, and whether that is what injectPod makes of it. */

import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { differences } from './differences.ts';
import type { Verdict } from './judge.ts';

/** A stored pod with its defaults, or the words of a refusal. */
export type Outcome =
  | { readonly kind: 'stored'; readonly pod: Pod }
  | { readonly kind: 'refused'; readonly words: string };

/** The outcome that a verdict tells. */
export function outcomeOf({ object, refused }: Verdict): Outcome {
  if (object !== undefined) return { kind: 'stored', pod: object };
  return { kind: 'refused', words: refused ?? 'no verdict' };
}

/**
 * What is wrong, one line each; empty when it is what was expected. A refusal may be framed in
 * more words.
 */
export function faultsOf(expected: Outcome, actual: Outcome): readonly string[] {
  if (expected.kind === 'stored' && actual.kind === 'stored') return differences(expected.pod, actual.pod);
  if (expected.kind === 'refused' && actual.kind === 'refused')
    return actual.words.includes(expected.words)
      ? []
      : [`expected the words: ${expected.words}`, `came: ${actual.words}`];
  return [`expected ${told(expected)}`, `came ${told(actual)}`];
}

function told(outcome: Outcome): string {
  return outcome.kind === 'stored' ? 'a stored pod' : `a refusal: ${outcome.words.slice(-400)}`;
}
