import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../src/json/json.ts';
import { patternFault } from '../../../src/resources/patterns/linear.ts';
import { object, resourceOf } from '../resources.ts';
import { CATASTROPHES, type Catastrophe } from './catastrophes.ts';
import { EVERYDAY, FALSE_REFUSALS } from './everyday.ts';

/** Longest turn of one input, milliseconds of CPU. */
const LIMIT_MS = 50;
/**
 * On a busy or slow machine: so many times as long as the plainest pattern on a whole body. The
 * budget of one input takes up to 15 times as long, a pattern without one thousands of times.
 */
const TIMES_PLAIN = 20;
/** Runs of the plainest, whose time is near the resolution of the clock. */
const PLAIN_RUNS = 5;
/** Tries of one input: garbage collection, compilation or a shared core slows only some of them. */
const TRIES = 20;
/** Longest text that is tried. */
const LONGEST = 4_096;
/** Texts in one body of 1 MiB. */
const TEXTS = 250;

/** CPU time of this thread, milliseconds: other processes do not count. */
function cpuMs(call: () => void): number {
  const start = process.threadCpuUsage();
  call();
  const { user, system } = process.threadCpuUsage(start);
  return (user + system) / 1_000;
}

/** The cost of 1 MiB of letters with a pattern of one step for each, milliseconds of CPU. */
const plainMs = (() => {
  const text = { type: 'string', pattern: '^[a-z]*$' };
  const resource = resourceOf(object({ many: { type: 'array', items: text } }));
  const many = Array.from({ length: TEXTS }, () => 'a'.repeat(LONGEST));
  return (): number =>
    cpuMs(() => {
      for (let run = 0; run < PLAIN_RUNS; run += 1) resource.prepare({ many }, undefined);
    }) / PLAIN_RUNS;
})();

/** The length of each try; empty when one of them is short enough. */
function tooLong(call: () => void): readonly string[] {
  const tries: string[] = [];
  for (let tried = 0; tried < TRIES; tried += 1) {
    const ms = cpuMs(call);
    if (ms < LIMIT_MS) return [];
    const plain = plainMs();
    if (ms < TIMES_PLAIN * plain) return [];
    tries.push(`${ms} ms of CPU, ${plain} for the plainest`);
  }
  return tries;
}

function attack([, pump, beginning, end]: Catastrophe, length: number): string {
  const room = Math.max(0, length - beginning.length - end.length);
  return beginning + pump.repeat(Math.ceil(room / pump.length)).slice(0, room) + end;
}

const ALL = Object.values(CATASTROPHES).flat();

describe('published catastrophic patterns', () => {
  it('are at least 140, of which at least 70 are accepted and run', () => {
    assert.equal(new Set(ALL.map(([pattern]) => pattern)).size, ALL.length);
    const accepted = ALL.filter(([pattern]) => patternFault(pattern) === undefined);
    assert.ok(ALL.length >= 140 && accepted.length >= 70, `${accepted.length} of ${ALL.length} are accepted`);
  });

  for (const [source, patterns] of Object.entries(CATASTROPHES))
    describe(source, () => {
      for (const catastrophe of patterns)
        it(`do not block a turn: ${catastrophe[0].slice(0, 60)}`, () => {
          const [pattern] = catastrophe;
          if (patternFault(pattern) !== undefined) {
            // A refused pattern never runs. The reason is a limit of the linear engine.
            assert.match(patternFault(pattern) ?? '', /look-around|back-reference|steps for each character|U\+FFFF/);
            return;
          }
          const text = { type: 'string', pattern };
          const resource = resourceOf(object({ one: text, many: { type: 'array', items: text } }));
          const worst = (input: JsonObject) =>
            assert.deepEqual(
              tooLong(() => resource.prepare(input, undefined)),
              [],
            );
          for (const length of [32, 64, 1_000, LONGEST]) worst({ one: attack(catastrophe, length) });
          worst({ many: Array.from({ length: TEXTS }, () => attack(catastrophe, LONGEST)) });
          worst({ many: Array.from({ length: TEXTS * 64 }, () => attack(catastrophe, 64)) });
        });
    });

  it('block the ordinary engine', () => {
    // It takes more than 20 s on 31 characters, so a time limit ends the process.
    const program = `/^(?:[a-z]|[a-z0-9]){64}$/.test('a'.repeat(31))`;
    const { signal } = spawnSync(process.execPath, ['--eval', program], { timeout: 2_000, killSignal: 'SIGKILL' });
    assert.equal(signal, 'SIGKILL');
  });
});

describe('everyday patterns', () => {
  it('are at least 20', () => assert.ok(EVERYDAY.length >= 20, `${EVERYDAY.length}`));
  for (const [name, pattern, yes, no] of EVERYDAY)
    it(`${name} is accepted, and matches as written`, () => {
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
    it(`${name} is refused; instead: ${instead}`, () => assert.match(patternFault(pattern) ?? 'accepted', reason));
});
