/**
 * Judges every way of injection by the admission code of a kube-apiserver:
 * `node verification/admission/main.ts`. Exit code 1 unless each gives every pod what injectPod
 * gives it, and the rules hold.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { POD_FIXTURES } from '../../spec/sidecar/injection/fixtures.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { clustersOfPolicies, mountParameters, optionsAt } from './clusters.ts';
import { fixtureTable } from './fixture-table.ts';
import { judge, judgeProgram } from './judge.ts';
import type { Ask, Report } from './outcome.ts';
import { ruleList } from './rules.ts';
import { startWebhook } from './webhook.ts';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

await using ends = new AsyncDisposableStack();
const program = broughtJudge();
process.exitCode = program !== undefined && (await isRight(program)) ? 0 : 1;

function broughtJudge(): string | undefined {
  try {
    return judgeProgram(say);
  } catch (error) {
    say(`verify-admission cannot run here: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

async function isRight(judgeAt: string): Promise<boolean> {
  const mounted = await temporaryDirectory(ends, 'admission-');
  mountParameters(mounted);
  const options = optionsAt(mounted);
  const file = join(await temporaryDirectory(ends, 'admission-'), 'options.yaml');
  writeFileSync(file, JSON.stringify(options));
  const clusters = { ...clustersOfPolicies(), ...(await startWebhook(ends, mounted)) };
  const ask: Ask = (reviews) => judge(judgeAt, clusters, reviews);
  const fixtures = POD_FIXTURES.map(({ name, pod }) => ({ name, pod }));

  const faults: string[] = [];
  const parts: readonly (() => Promise<Report>)[] = [
    () => fixtureTable(ask, fixtures, options, file),
    () => ruleList(ask, options),
  ];
  for (const part of parts) {
    const report = await part();
    faults.push(...report.faults);
    for (const line of report.lines) say(line);
    say('');
  }
  say(faults.length === 0 ? 'every way gives what injectPod gives' : `${faults.length} faults`);
  for (const fault of faults) say(`  ${fault}`);
  return faults.length === 0;
}
