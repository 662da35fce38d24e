/**
 * Restarts of injected pods under buyers that pay: `node verification/pods/main.ts [--short]
 * [--calls 300] [--only "acg inject"] [--tell]`. Prints a row for each; exits 1 when a promise is
 * broken. With `--tell` the standard error shows what happened in every pod.
 */

import { parseArgs } from 'node:util';
import { injected, injectedEveryWay } from './injections.ts';
import { FULL, faults, merchantAway, rollingRestart, SHORT, type Shown, withoutRelease } from './scenarios.ts';
import { merchantPod } from './world.ts';

const { values } = parseArgs({
  options: {
    short: { type: 'boolean' },
    calls: { type: 'string', default: '300' },
    only: { type: 'string' },
    tell: { type: 'boolean' },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const tell = values.tell === true ? (text: string) => void process.stderr.write(`${text}\n`) : () => undefined;
const shared = { lengths: values.short === true ? SHORT : FULL, tell };
const rolling = { ...shared, buyers: 24, leastCalls: Number(values.calls) };
const pod = injected(merchantPod());
/** Who restarts the merchant so often sees each of the moments that matter. */
const AWAY_TIMES = 5;

// The judge of two of them takes minutes to build the first time.
const withoutWays = values.only !== undefined && ['without release', 'restart', 'kill'].includes(values.only);
const ways = withoutWays ? [] : await injectedEveryWay(merchantPod(), say);
for (const { way, differences } of ways)
  say(`${way}: ${differences.length === 0 ? 'the pod that injectPod makes' : `DIFFERS: ${differences.join('; ')}`}`);
let broken = ways.some(({ differences }) => differences.length > 0);

const runs: readonly (readonly [name: string, run: () => Promise<Shown>])[] = [
  ...ways.map(
    (one) =>
      [
        one.way,
        () => rollingRestart({ ...rolling, kind: 'rolling', scenario: `rolling restart, ${one.way}`, pod: one.pod }),
      ] as const,
  ),
  [
    'without release',
    () =>
      rollingRestart({
        ...rolling,
        ...{ kind: 'control', scenario: 'rolling restart without /release', pod: withoutRelease(pod) },
      }),
  ],
  [
    'restart',
    () => merchantAway({ ...shared, kind: 'restart', scenario: 'merchant restarted alone', pod, times: AWAY_TIMES }),
  ],
  ['kill', () => merchantAway({ ...shared, kind: 'kill', scenario: 'merchant killed alone', pod, times: AWAY_TIMES })],
];
say('| run | calls | of the slowest | failed | paid, undelivered | of those lost | longest drain | seconds |');
say(`|${' --- |'.repeat(8)}`);
for (const [name, run] of runs) {
  if (values.only !== undefined && values.only !== name) continue;
  const shown = await run();
  const { scenario, calls, slow, failed, undelivered, lost, drainSeconds, seconds } = shown;
  const drain = drainSeconds === undefined ? '' : `${drainSeconds} s`;
  say(`| ${[scenario, calls, slow, failed, undelivered, lost, drain, seconds].join(' | ')} |`);
  for (const [failure, times] of Object.entries(shown.failures)) say(`  ${times} times ${failure}`);
  const wrong = faults(shown);
  broken ||= wrong.length > 0;
  for (const fault of wrong) say(`  BROKEN: ${fault}`);
}
process.exit(broken ? 1 : 0);
