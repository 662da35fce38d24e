/**
 * The slip table: `node verification/passthrough/main.ts [--spellings 3600] [--harmless 1200]
 * [--seed 7] [--only Koa]`. Exit code 1 unless nothing sold ran unpaid,
 * and what is not sold arrived as it was sent.
 */

import { parseArgs } from 'node:util';
import { guardCosts } from './guard-cost.ts';
import { harmlessCases } from './harmless.ts';
import { measureSite, SITES } from './sites.ts';
import { casesOf, caseText, MERCHANTS, measureRow, type Row } from './slips.ts';
import { spellings } from './spellings.ts';

const { values } = parseArgs({
  options: {
    spellings: { type: 'string', default: '3600' },
    harmless: { type: 'string', default: '1200' },
    seed: { type: 'string', default: '7' },
    only: { type: 'string', default: '' },
  },
});
const seed = Number(values.seed);
const tried = spellings(Number(values.spellings), seed);
const cases = casesOf(tried);
const harmless = harmlessCases(Number(values.harmless), seed);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

say(`${tried.length} spellings, ${cases.length} requests to each merchant, seed ${seed}`);
say('runs of something sold: bare, and through the gateway\n');
say(`| merchant | bare | gateway | harmless, of ${harmless.length} |`);
say(`|${' --- |'.repeat(4)}`);
const rows: Row[] = [];
for (const kind of MERCHANTS.filter(({ name }) => name.includes(values.only))) {
  const row = await measureRow(kind, cases, harmless);
  rows.push(row);
  const passed = `${row.harmless.unchanged} unchanged, ${row.harmless.refusedByRule.length} refused by rule`;
  say(`| ${[row.merchant, row.bare.executed.length, row.guarded.executed.length, passed].join(' | ')} |`);
}

say('\nreal sites: requests with header fields and second names\n');
say('| site | requests | reach what is sold without the gateway | with it | not named | harmless as before | of |');
say(`|${' --- |'.repeat(7)}`);
const siteFaults: string[] = [];
for (const kind of SITES.filter(({ name }) => name.includes(values.only))) {
  const { requests, bare, leaked, unnamed, changed, harmless: all } = await measureSite(kind);
  say(
    `| ${[kind.name, requests, bare.length, leaked.length, unnamed.length, all - changed.length, all].join(' | ')} |`,
  );
  if (bare.length === 0) siteFaults.push(`${kind.name} gives nothing away`);
  for (const one of leaked) siteFaults.push(`${kind.name} gave it unpaid: ${JSON.stringify(one)}`);
  for (const one of unnamed) siteFaults.push(`${kind.name}: no reason for ${JSON.stringify(one)}`);
  for (const target of changed) siteFaults.push(`${kind.name} is not answered as before: ${target}`);
}

say('\nharmless requests that are refused while something is sold');
for (const one of rows[0]?.harmless.refusedByRule ?? []) say(`  ${one.expected}: ${caseText(one)}`);
say('\ncost of the decision, microseconds, beside new URL of the same target in the same run');
for (const { name, guard, url } of guardCosts()) say(`  ${name.padEnd(32)} ${guard.toFixed(1)}  ${url.toFixed(1)}`);

const faults = [...rows.flatMap(faultsOf), ...siteFaults];
say(faults.length === 0 ? '\nnothing sold ran unpaid' : `\n${faults.length} faults`);
for (const fault of faults) say(`  ${fault}`);
process.exitCode = faults.length === 0 ? 0 : 1;

function faultsOf({ merchant, bare, guarded, harmless: passed }: Row): readonly string[] {
  return [
    ...(bare.executed.length === 0 ? [`${merchant} sells nothing`] : []),
    ...guarded.executed.map((one) => `${merchant} ran unpaid: ${caseText(one)}`),
    ...guarded.unanswered.map((one) => `${merchant} gave no answer: ${caseText(one)}`),
    ...passed.refused.map((one) => `refused in front of ${merchant}: ${caseText(one)}`),
    ...passed.changed.map((one) => `came to ${merchant} changed: ${caseText(one)}`),
    ...passed.passedInVain.map((one) => `not refused by ${one.expected}: ${caseText(one)}`),
  ];
}
