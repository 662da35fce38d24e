import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { unwatched } from '../../../spec/support/unwatched.ts';
import { EVERY } from '../plan.ts';
import {
  type Case,
  CRASH,
  casesOf,
  copiesAtOnce,
  copiesInTheLastSeconds,
  failureReport,
  LONG_PAUSE,
  SHORT_PAUSE,
  type Sweep,
  settledAfter,
  underMandate,
} from './crashes.ts';

const elsewhere = unwatched<typeof import('./crashes.ts')>(new URL('./crashes.ts', import.meta.url));

/**
 * A facilitator that refuses for a minute makes runs of a minute; the other method makes them
 * shorter, with the same results.
 */
const isLong = ({ name }: Case): boolean => /refused for good|hangs for a minute/.test(name);

/** Two calls with a key are enough: the effect of a key does not depend on rail or fault. */
const ONCE: readonly Case[] = [
  ...casesOf('remote', 'GET').filter((one) => !isLong(one)),
  ...casesOf('remote', 'POST'),
  ...casesOf('local', 'GET'),
  ...casesOf('local', 'POST'),
  ...casesOf('blind', 'GET')
    .slice(0, 8)
    .filter((one) => !isLong(one)),
  ...[...casesOf('remote', 'GET'), ...casesOf('local', 'POST')]
    .filter((one) => EVERY || !isLong(one))
    .map(settledAfter),
  ...casesOf('blind', 'GET')
    .filter((one) => !isLong(one))
    .map(settledAfter),
  ...casesOf('remote', 'GET', 'key-of-the-buyer').slice(0, 1),
  ...casesOf('local', 'POST', 'key-of-the-buyer').slice(0, 1),
  ...casesOf('remote', 'POST')
    .slice(0, 8)
    .filter((one) => !isLong(one))
    .map(underMandate),
  ...casesOf('local', 'POST')
    .filter((one) => EVERY || !isLong(one))
    .map(underMandate),
];
/**
 * A second crash interrupts the recovery, for one variant in a test run and for three with
 * `CHAOS=all`; `node verification/chaos/sim/main.ts --deep` does it for every one.
 */
const TWICE: readonly Case[] = [
  ...casesOf('local', 'POST').filter(({ name }) => /all goes well/.test(name)),
  ...casesOf('remote', 'GET')
    .filter(({ name }) => /all goes well/.test(name) || (EVERY && /the buyer leaves/.test(name)))
    .map(settledAfter),
  ...(EVERY ? casesOf('remote', 'POST').filter(({ name }) => /all goes well|merchant unwritten$/.test(name)) : []),
];

const TOGETHER: readonly Case[] = [
  copiesInTheLastSeconds('local', 'GET'),
  copiesInTheLastSeconds('remote', 'POST'),
  copiesAtOnce('remote', 'GET'),
  copiesAtOnce('local', 'POST', 'key-of-the-buyer'),
  settledAfter(copiesAtOnce('remote', 'GET')),
  settledAfter(copiesAtOnce('local', 'POST', 'key-of-the-buyer')),
  underMandate(copiesInTheLastSeconds('local', 'POST')),
  underMandate(copiesAtOnce('remote', 'POST')),
];

async function expectNone(swept: Promise<Sweep>, tally: { runs: number; steps: number }): Promise<void> {
  const { failures, runs, steps } = await swept;
  tally.runs += runs;
  tally.steps += steps;
  const [first] = failures;
  if (first !== undefined) assert.fail(`${failures.length} of ${runs} runs; the first:\n${await failureReport(first)}`);
}

describe('one paid call, with a process that dies or is paused at every await', () => {
  const tally = { runs: 0, steps: 0 };
  const began = performance.now();
  after(() => {
    const seconds = Math.round((performance.now() - began) / 100) / 10;
    process.stdout.write(`${JSON.stringify({ sim: 'crashes', ...tally, seconds })}\n`);
  });

  for (const one of ONCE)
    it(`${one.name}: paid once, and delivered or redeemable`, () =>
      expectNone(elsewhere('sweep', [one], [CRASH, LONG_PAUSE]), tally));

  for (const one of TOGETHER)
    it(`${one.name}: one payment, one purchase`, () =>
      expectNone(elsewhere('sweep', [one], [CRASH, SHORT_PAUSE, LONG_PAUSE]), tally));

  for (const one of TWICE)
    it(`${one.name}: the same when a second process dies at every later await`, () =>
      expectNone(elsewhere('sweep', [one], [CRASH], CRASH), tally));
});
