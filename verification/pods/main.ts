/**
 * Restarts of injected pods under buyers that pay: `node verification/pods/main.ts [--short]
 * [--only away] [--tell]`. Prints a row for each; exits 1 when a promise is broken.
 */

import { parseArgs } from 'node:util';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import { FULL, merchantAway, rollingRestart, SHORT, withoutRelease } from './scenarios.ts';
import { merchantPod } from './world.ts';

const { values } = parseArgs({
  options: { short: { type: 'boolean' }, only: { type: 'string' }, tell: { type: 'boolean' } },
});
const lengths = values.short === true ? SHORT : FULL;
const injection = injectPod(merchantPod(), USUAL_OPTIONS);
if (injection.kind === 'refused') throw new Error(injection.message);
const pod = injection.pod;
const tell = values.tell === true ? (text: string) => void process.stderr.write(`${text}\n`) : undefined;
const shared = { lengths, buyers: 24, leastCalls: 300, ...(tell === undefined ? {} : { tell }) };
const runs = [
  () => rollingRestart({ ...shared, scenario: 'rolling', pod }),
  () => rollingRestart({ ...shared, scenario: 'without release', pod: withoutRelease(pod) }),
  () => merchantAway({ ...shared, scenario: 'away', pod, times: 2, how: 'restart' }),
  () => merchantAway({ ...shared, scenario: 'away killed', pod, times: 2, how: 'kill' }),
];
const names = ['rolling', 'without', 'away', 'killed'];
for (const [index, run] of runs.entries())
  if (values.only === undefined || values.only === names[index])
    process.stdout.write(`${JSON.stringify(await run())}\n`);
process.exit(0);
