import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { attack, measured } from '../catalogue.ts';
import { MESSAGE_CHANNELS, type Seen } from '../payments/channels.ts';
import { HOSTILE_ANSWERS } from './answers.ts';
import { CANARY, type Outcome } from './hostile-answer.ts';
import { GOOD, type HostileStage, openHostileStage, PRICE_UNITS, wellFormed } from './stage.ts';

/** All headers that an answer to an agent can have. */
const NAMES: ReadonlySet<string> = new Set([
  'cache-control',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'idempotent-replayed',
  'keep-alive',
  'payment-response',
  'transfer-encoding',
  'vary',
  'x-content-type-options',
  'x-request-id',
]);

describe('a backend that sends hostile answers', () => {
  let stage: HostileStage;
  before(async () => {
    stage = await openHostileStage();
  });
  after(() => stage.close());

  attack(['H6', 'P6'], 'at least forty hostile answers are tried', (context) => {
    assert.equal(new Set(HOSTILE_ANSWERS.map(({ name }) => name)).size, HOSTILE_ANSWERS.length);
    measured(context, 'hostile backend answers', HOSTILE_ANSWERS.length);
  });

  for (const { name, action, outcome } of HOSTILE_ANSWERS)
    attack(['H6', 'P2', 'P6'], `${name}: ${outcome.kind}, over every channel, free and paid`, async (context) => {
      const proofs = await Promise.all(MESSAGE_CHANNELS.map(() => stage.proof('goods')));
      const before = await stage.income();
      stage.behave(action);
      const [free, paid] = await Promise.all([
        Promise.all(MESSAGE_CHANNELS.map((channel) => stage.call(channel, 'gift'))),
        Promise.all(MESSAGE_CHANNELS.map((channel, at) => stage.call(channel, 'goods', proofs[at]))),
      ]);
      for (const [at, channel] of MESSAGE_CHANNELS.entries())
        for (const seen of [free[at], paid[at]]) {
          assert.ok(seen !== undefined);
          expected(seen, outcome, channel === 'http', `${channel} ${seen.everything}`);
          closed(seen);
        }

      stage.behave(wellFormed(GOOD));
      const next = await Promise.all(
        [...MESSAGE_CHANNELS, ...MESSAGE_CHANNELS].map((channel) => stage.call(channel, 'gift')),
      );
      for (const seen of next) assert.deepEqual([seen.outcome, seen.bytes.toString()], ['delivered', GOOD]);

      const collected = await Promise.all(
        MESSAGE_CHANNELS.map((channel, at) => stage.call(channel, 'goods', proofs[at])),
      );
      for (const seen of collected) {
        closed(seen);
        // A delivered answer is kept for the buyer's token; an undelivered one is delivered now.
        if (outcome.kind === 'delivered')
          assert.deepEqual([seen.outcome, seen.bytes.toString('latin1')], ['delivered', outcome.body]);
        else assert.deepEqual([seen.outcome, seen.bytes.toString()], ['delivered', GOOD], seen.everything);
      }
      const settled = ((await stage.income()) - before) / PRICE_UNITS;
      assert.equal(settled, BigInt(MESSAGE_CHANNELS.length), 'each proof is settled once');
      measured(context, 'double settlements', Number(settled) - MESSAGE_CHANNELS.length);
    });

  attack('O7', 'no canary is in the log', () => {
    for (const line of stage.gateway.logLines) assert.ok(!line.includes(CANARY), line);
  });
});

/** Fails when a header is not on the list or any part holds the canary. */
function closed({ names, everything }: Seen): void {
  assert.ok(!everything.includes(CANARY), everything);
  assert.deepEqual(
    names.filter((name) => !NAMES.has(name)),
    [],
  );
  assert.equal(new Set(names).size, names.length, 'no header comes twice');
}

function expected(seen: Seen, outcome: Outcome, streamed: boolean, what: string): void {
  if (outcome.kind === 'delivered') {
    assert.equal(seen.outcome, 'delivered', what);
    assert.equal(seen.bytes.toString('latin1'), outcome.body, what);
    return;
  }
  if (outcome.kind === 'cut' && streamed) {
    assert.equal(seen.outcome, 'cut', what);
    return;
  }
  assert.equal(seen.outcome, 'failed', what);
  assert.ok(seen.code === 'BACKEND_ERROR' || (seen.code === 'BACKEND_TIMEOUT' && outcome.reason === 'timeout'), what);
  // After three broken connections the next call sends no request, and waits until its deadline.
  const reasons: readonly unknown[] = outcome.reason === 'transport' ? ['transport', 'timeout'] : [outcome.reason];
  if (outcome.reason !== undefined) assert.ok(reasons.includes(seen.reason), what);
  if (outcome.kind === 'failed') assert.equal(seen.details['status'], outcome.status, what);
}
