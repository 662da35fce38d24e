import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Limiter } from '../../../src/limiter.ts';
import {
  ALL_SETTLEMENTS,
  limitSettlements,
  PAYER_SETTLEMENTS,
  PAYER_WAITERS,
  SLOT_WAIT_MS,
} from '../../../src/payments/settlement/settle.ts';
import { PEER_CONNECTIONS } from '../../../src/payments/x402/chain/http-json.ts';
import { rest, type VirtualTime, virtualTime } from './virtual-time.ts';

describe('slots for settlements', () => {
  let time: VirtualTime;
  let slots: Limiter;
  let running: { readonly payer: string; readonly end: (how?: Error) => void }[];
  beforeEach(() => {
    time = virtualTime();
    slots = limitSettlements(time);
    running = [];
  });

  /** A settlement that runs until it is ended. */
  const settle = async (payer: string): Promise<'settled' | 'crowded'> => {
    const settled = await slots.within(payer, () => {
      const { promise, resolve, reject } = Promise.withResolvers<'settled'>();
      running.push({ payer, end: (how) => (how === undefined ? resolve('settled') : reject(how)) });
      return promise;
    });
    return settled ?? 'crowded';
  };
  const settleAll = (payer: string, count: number) => Array.from({ length: count }, () => settle(payer));
  const fill = (count: number) => Array.from({ length: count }, (_, n) => settle(`payer ${n}`));
  const end = async (how?: Error): Promise<void> => {
    running.shift()?.end(how);
    await rest();
  };

  it('are fewer than the connections to a peer, and one payer has few of them', () => {
    assert.ok(ALL_SETTLEMENTS < PEER_CONNECTIONS);
    assert.ok(PAYER_SETTLEMENTS * 10 < ALL_SETTLEMENTS);
  });

  it('one payer runs up to its bound; the next waits, and others do not', async () => {
    settleAll('0xab', PAYER_SETTLEMENTS);
    const next = settle('0xab');
    await rest();
    assert.equal(running.length, PAYER_SETTLEMENTS);
    settle('0xcd');
    assert.equal(running.length, PAYER_SETTLEMENTS + 1);
    await end();
    assert.equal(running.length, PAYER_SETTLEMENTS + 1, 'the one that waited has the slot');
    for (const { end: finish } of running) finish();
    assert.equal(await next, 'settled');
  });

  it('one that is free now is taken at once; where there is none nothing runs and nothing waits', async () => {
    settleAll('0xab', PAYER_SETTLEMENTS - 1);
    const { promise, resolve } = Promise.withResolvers<string>();
    const last = slots.atOnce('0xab', () => promise);
    assert.ok(last !== undefined);
    assert.equal(
      slots.atOnce('0xab', () => assert.fail('ran without a slot')),
      undefined,
    );
    resolve('settled');
    assert.equal(await last, 'settled');
    assert.equal(await slots.atOnce('0xab', async () => 'the slot came back'), 'the slot came back');
  });

  it('a slot comes back from a settlement that throws', async () => {
    const [failing] = settleAll('0xab', PAYER_SETTLEMENTS);
    const next = settle('0xab');
    const failed = assert.rejects(failing ?? Promise.resolve(), /broke/);
    await end(new Error('broke'));
    await failed;
    for (const { end: finish } of running) finish();
    assert.equal(await next, 'settled');
  });

  it('no call waits for longer than the bound, and one that gave up gets no slot later', async () => {
    settleAll('0xab', PAYER_SETTLEMENTS);
    let answer: string | undefined;
    void settle('0xab').then((how) => {
      answer = how;
    });
    await time.pass(SLOT_WAIT_MS - 1);
    assert.equal(answer, undefined);
    await time.pass(1);
    assert.equal(answer, 'crowded');
    await end();
    assert.equal(running.length, PAYER_SETTLEMENTS - 1);
    settle('0xab');
    assert.equal(running.length, PAYER_SETTLEMENTS);
  });

  it('the waiting calls of one payer have their bound: one more is crowded at once', async () => {
    settleAll('0xab', PAYER_SETTLEMENTS);
    const answers: string[] = [];
    for (const waiter of settleAll('0xab', PAYER_WAITERS)) void waiter.then((how) => answers.push(how));
    await rest();
    assert.deepEqual(answers, []);
    assert.equal(await settle('0xab'), 'crowded');
    assert.deepEqual(answers, []);
  });

  it('all payers together have their bound; a call that waits is served in turn, past those whose own slots are taken', async () => {
    settleAll('0xab', PAYER_SETTLEMENTS);
    fill(ALL_SETTLEMENTS - PAYER_SETTLEMENTS);
    const busy = settle('0xab');
    const first = settle('0xcd');
    settle('0xef');
    await rest();
    assert.equal(running.length, ALL_SETTLEMENTS);
    running.pop()?.end();
    await rest();
    assert.deepEqual([running.length, running.at(-1)?.payer], [ALL_SETTLEMENTS, '0xcd']);
    await time.pass(SLOT_WAIT_MS);
    assert.equal(await busy, 'crowded');
    running.pop()?.end();
    assert.equal(await first, 'settled');
  });
});
