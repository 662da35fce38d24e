/** One pod of a merchant, injected in every way that there is. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { clustersOfPolicies, FREE } from '../admission/clusters.ts';
import { commanded, rendered } from '../admission/fixture-table.ts';
import { judge, judgeProgram } from '../admission/judge.ts';
import { faultsOf, type Outcome, outcomeOf } from '../admission/outcome.ts';
import { startWebhook } from '../admission/webhook.ts';

/** What one way of injection made of the pod. */
export interface Injected {
  readonly way: string;
  /** As the API server would have stored it, where its admission code is there. */
  readonly pod: Pod;
  /** How it differs from what injectPod makes; empty: in nothing. */
  readonly differences: readonly string[];
}

/** What injectPod makes of it. */
export function injected(pod: Pod): Pod {
  const injection = injectPod(pod, USUAL_OPTIONS);
  if (injection.kind === 'refused') throw new Error(injection.message);
  return injection.pod;
}

/**
 * The pod by `acg inject`, by the component that it writes, and by the webhook, which needs the
 * admission code of a kube-apiserver; where it cannot be had, `say` tells so.
 */
export async function injectedEveryWay(pod: Pod, say: (line: string) => void): Promise<readonly Injected[]> {
  await using ends = new AsyncDisposableStack();
  const options = join(await temporaryDirectory(ends, 'acg-pods-'), 'options.yaml');
  writeFileSync(options, JSON.stringify(USUAL_OPTIONS));
  const named = [{ name: 'merchant', pod }];
  const offline: readonly (readonly [string, Outcome | undefined])[] = [
    ['acg inject', commanded(named, options).get('merchant')],
    ['component', (await rendered(named, options)).get('merchant')],
  ];
  const program = broughtJudge(say);
  if (program === undefined)
    return offline.map(([way, outcome]) => compared(way, { kind: 'stored', pod: injected(pod) }, outcome));
  const clusters = { ...clustersOfPolicies(), ...(await startWebhook(ends, options)) };
  const stored = async (cluster: string, object: Pod): Promise<Outcome | undefined> => {
    const review = { name: 'merchant', cluster, namespace: FREE, operation: 'CREATE', object } as const;
    const [verdict] = await judge(program, clusters, [review]);
    return verdict && outcomeOf(verdict);
  };
  const expected = (await stored('plain', injected(pod))) ?? missing('injectPod');
  const ways: Injected[] = [];
  for (const [way, outcome] of offline)
    ways.push(compared(way, expected, outcome?.kind === 'stored' ? await stored('plain', outcome.pod) : outcome));
  return [...ways, compared('webhook', expected, await stored('webhook', pod))];
}

function broughtJudge(say: (line: string) => void): string | undefined {
  try {
    return judgeProgram(say);
  } catch (error) {
    say(`NOT RUN: the webhook, because ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

function compared(way: string, expected: Outcome, actual: Outcome | undefined): Injected {
  if (actual?.kind !== 'stored') throw new Error(`${way}: ${actual?.words ?? 'gave no pod'}`);
  return { way, pod: actual.pod, differences: faultsOf(expected, actual) };
}

function missing(what: string): never {
  throw new Error(`the judge gave no verdict over ${what}`);
}
