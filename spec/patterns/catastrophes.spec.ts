import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../src/json/types.ts';
import { patternFault } from '../../src/patterns/linear.ts';
import { object, resourceOf } from '../catalogue/resources.ts';
import { CATASTROPHES, type Catastrophe } from './catastrophes.ts';
import { EVERYDAY, FALSE_REFUSALS } from './everyday.ts';

/** Longest turn that one input may take, milliseconds of CPU. */
const LIMIT_MS = 50;
/** Runs of one input: what a busy machine adds to one of them (garbage, a compilation) it does not add to all. */
const RUNS = 4;
/** Longest text that is tried. */
const LONGEST = 4_096;
/** Texts in one body of 1 MiB. */
const TEXTS = 250;

/** CPU time of this thread, milliseconds: what other processes do does not count. */
function cpuMs(call: () => void): number {
  const start = process.threadCpuUsage();
  call();
  const { user, system } = process.threadCpuUsage(start);
  return (user + system) / 1_000;
}

function best(call: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS && least > LIMIT_MS / 4; run += 1) least = Math.min(least, cpuMs(call));
  return least;
}

function attack([, pump, beginning, end]: Catastrophe, length: number): string {
  const room = Math.max(0, length - beginning.length - end.length);
  return beginning + pump.repeat(Math.ceil(room / pump.length)).slice(0, room) + end;
}

const ALL = Object.values(CATASTROPHES).flat();

describe('published catastrophic patterns', () => {
  it('are at least 300, of which at least 150 are accepted and run', () => {
    assert.equal(new Set(ALL.map(([pattern]) => pattern)).size, ALL.length);
    const accepted = ALL.filter(([pattern]) => patternFault(pattern) === undefined);
    assert.ok(ALL.length >= 300 && accepted.length >= 150, `${accepted.length} of ${ALL.length} are accepted`);
  });

  for (const [source, patterns] of Object.entries(CATASTROPHES))
    describe(source, () => {
      for (const catastrophe of patterns)
        it(`hold no turn: ${catastrophe[0].slice(0, 60)}`, () => {
          const [pattern] = catastrophe;
          if (patternFault(pattern) !== undefined) {
            // A refusal has no turn to hold. Why it is refused is one of what the linear engine cannot do.
            assert.match(patternFault(pattern) ?? '', /look-around|back-reference|steps for each character|U\+FFFF/);
            return;
          }
          const text = { type: 'string', pattern };
          const resource = resourceOf(object({ one: text, many: { type: 'array', items: text } }));
          const worst = (input: JsonObject) => {
            const ms = best(() => resource.prepare(input, undefined));
            assert.ok(ms < LIMIT_MS, `${ms} ms of CPU`);
          };
          for (const length of [32, 64, 1_000, LONGEST]) worst({ one: attack(catastrophe, length) });
          worst({ many: Array.from({ length: TEXTS }, () => attack(catastrophe, LONGEST)) });
          worst({ many: Array.from({ length: TEXTS * 64 }, () => attack(catastrophe, 64)) });
        });
    });

  it('would hold the ordinary engine', () => {
    // On 31 characters, which ended nothing for 20 s. A time limit of its own ends the process that never would.
    const program = `/^(?:[a-z]|[a-z0-9]){64}$/.test('a'.repeat(31))`;
    const { signal } = spawnSync(process.execPath, ['--eval', program], { timeout: 2_000, killSignal: 'SIGKILL' });
    assert.equal(signal, 'SIGKILL');
  });
});

describe('everyday patterns', () => {
  it('are at least 40', () => assert.ok(EVERYDAY.length >= 40, `${EVERYDAY.length}`));
  for (const [name, pattern, yes, no] of EVERYDAY)
    it(`${name} is accepted, and means what it says`, () => {
      assert.equal(patternFault(pattern), undefined);
      const resource = resourceOf(object({ a: { type: 'string', pattern } }));
      for (const a of yes) assert.equal(resource.prepare({ a }, undefined).ok, true, a);
      for (const a of no) assert.equal(resource.prepare({ a }, undefined).ok, false, a);
    });
  it('a hundred of each fit one input', () => {
    for (const [name, pattern, [example]] of EVERYDAY) {
      const items = { type: 'string', pattern };
      const resource = resourceOf(object({ many: { type: 'array', items } }));
      const { ok } = resource.prepare({ many: Array.from({ length: 100 }, () => example ?? '') }, undefined);
      assert.equal(ok, true, name);
    }
  });
  for (const [name, pattern, reason, instead] of FALSE_REFUSALS)
    it(`${name} is refused, though it is ordinary: ${instead}`, () =>
      assert.match(patternFault(pattern) ?? 'accepted', reason));
});
