import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { before, describe, it } from 'node:test';
import { terminate } from '../../tools/local-world/child.ts';
import { shortPlan } from './plan.ts';
import type { Report } from './run.ts';

/** Every run uses the same seed; CHAOS_SEED chooses another one. */
const SEED = Number(process.env['CHAOS_SEED'] ?? 20_260_921);
/** Longest time from the last fault until no payment is open, milliseconds. */
const RECOVERY_GOAL_MS = 10_000;

describe('payments under kill -9, pauses, power cuts, broken connections and false replies', () => {
  const plan = shortPlan(SEED);
  let report: Report;

  before(async () => {
    report = await shortStorm(SEED);
    // One line for the log of a build, with all that a replay needs.
    console.log(JSON.stringify(report));
  });

  it('breaks no goal: no payment is taken twice, lost or invented, nothing is delivered unpaid', () => {
    const broken = Object.entries(report.goals).filter(([, count]) => count > 0);
    assert.deepEqual(broken, [], `seed ${SEED}: node verification/chaos/main.ts --short --seed ${SEED}`);
  });

  it('has no open payment ten seconds after the last fault', () => {
    assert.ok(report.recoveryMs <= RECOVERY_GOAL_MS, `${report.recoveryMs} ms`);
  });

  it('loses only records, receipts and events of the seconds before a power cut', () => {
    const { receiptsLost, moneyEventsLost, marksLost, bound } = report.excused;
    assert.ok(Math.max(receiptsLost, moneyEventsLost, marksLost) <= bound, JSON.stringify(report.excused));
  });

  it('has enough calls on every channel, and enough kills, pauses, power cuts and faults of every kind', () => {
    const { kills, paidCalls, faults, kinds, cuts } = report;
    assert.ok(paidCalls >= 160, `${paidCalls} paid calls`);
    assert.ok(report.calls >= plan.calls, `${report.calls} calls`);
    assert.ok(kills.gateway >= plan.least.gatewayKills, `${kills.gateway} kills of a gateway`);
    assert.ok(kills.redis >= plan.least.redisKills, `${kills.redis} kills of Redis`);
    assert.ok(kills.gatewayPause >= plan.least.gatewayPauses, `${kills.gatewayPause} pauses of a gateway`);
    assert.ok(kills.redisPause >= plan.least.redisPauses, `${kills.redisPause} pauses of Redis`);
    assert.ok(kills.clockJump >= plan.least.clockJumps, `${kills.clockJump} jumps of a clock`);
    assert.deepEqual(Object.keys(report.channels).sort(), ['a2a', 'http', 'mcp', 'origin']);
    assert.ok(cuts.filter(({ lostBytes }) => lostBytes > 0).length >= plan.least.powerCuts, JSON.stringify(cuts));
    assert.ok(Object.keys(faults).length >= 22, `faults: ${JSON.stringify(faults)}`);
    assert.equal(Object.keys(kinds).length, 6, `buyers: ${JSON.stringify(kinds)}`);
  });
});

const MAIN = join(import.meta.dirname, 'main.ts');
/** Longest time from the report to the exit of the process, milliseconds. */
const FAREWELL_MS = 2_000;

/**
 * The short storm in a process of its own, which is killed once it has printed its report: hundreds
 * of processes, sockets and native handles end in it, and none of them may delay the report.
 * @throws Error with its last words
 */
async function shortStorm(seed: number): Promise<Report> {
  const child = spawn(process.execPath, [MAIN, '--short', '--seed', String(seed)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const words: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    words.push(line);
    if (words.length > 40) words.shift();
  });
  const printed = new Promise<string>((resolve) => createInterface({ input: child.stdout }).once('line', resolve));
  // Not its exit: its output may arrive after that.
  const silent = once(child, 'close').then(([code, signal]) => {
    throw new Error(`the storm ended with ${signal ?? code} and printed nothing\n${words.join('\n')}`);
  });
  silent.catch(() => undefined);
  try {
    return JSON.parse(await Promise.race([printed, silent])) as Report;
  } finally {
    await terminate(child, FAREWELL_MS);
  }
}
