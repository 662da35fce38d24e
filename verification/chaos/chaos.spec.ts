import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { shortPlan } from './plan.ts';
import type { Report } from './report.ts';
import { shortStorm } from './storm.ts';

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
