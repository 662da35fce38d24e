import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LEASE_MS, leaseOwnRelayer, RENEW_EVERY_MS } from '../../../../src/payments/x402/local/own-relayer.ts';
import type { Time } from '../../../../src/time/time.ts';

const ACCOUNTS = ['0xa0', '0xa1', '0xa2'];

/** A process with its leases; what the store answers and when time passes is the test's to say. */
function open() {
  let now = 0;
  let wake: (() => void) | undefined;
  let answer: () => Promise<string | undefined> = async () => undefined;
  const asked: { readonly owner: string; readonly forMs: number }[] = [];
  const released: string[] = [];
  const said: string[] = [];
  const time: Time = {
    now: () => now,
    sleep: () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
  };
  const settled = async (): Promise<void> => {
    for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    asked,
    released,
    said,
    settled,
    answers(next: () => Promise<string | undefined>): void {
      answer = next;
    },
    pass(ms: number): void {
      now += ms;
    },
    /** The next renewal begins, and ends where the store answers. */
    async renew(): Promise<void> {
      wake?.();
      await settled();
    },
    start: () =>
      leaseOwnRelayer({
        accounts: ACCOUNTS,
        time,
        leases: {
          lease: (owner, _accounts, forMs) => {
            asked.push({ owner, forMs });
            return answer();
          },
          release: async (owner) => void released.push(owner),
        },
        log: {
          info: (facts, message) => void said.push(`${message} ${(facts as { relayer?: string }).relayer}`),
          warn: (_facts, message) => void said.push(message.split(/[,:]/)[0] ?? ''),
        },
      }),
  };
}

describe('the relayer account of a process', () => {
  it('is the one that it leased, and says so once', async () => {
    const stage = open();
    stage.answers(async () => '0xa2');
    const own = stage.start();
    assert.equal(own.index(), 0, 'before the store has answered');
    await stage.settled();
    assert.equal(own.index(), 2);
    stage.pass(RENEW_EVERY_MS);
    await stage.renew();
    assert.equal(own.index(), 2);
    assert.deepEqual(stage.said, ['relayer account leased 0xa2']);
    assert.equal(new Set(stage.asked.map(({ owner }) => owner)).size, 1);
    assert.deepEqual(new Set(stage.asked.map(({ forMs }) => forMs)), new Set([LEASE_MS]));
  });

  it('is another one for each process', async () => {
    const stages = [open(), open()];
    for (const stage of stages) stage.start();
    assert.notEqual(stages[0]?.asked[0]?.owner, stages[1]?.asked[0]?.owner);
  });

  it('is not used once the lease may have ended, counted from before the question', async () => {
    const stage = open();
    let reply: (account: string) => void = () => undefined;
    stage.answers(
      () =>
        new Promise((resolve) => {
          reply = resolve;
        }),
    );
    const own = stage.start();
    stage.pass(1_000);
    reply('0xa1');
    await stage.settled();
    assert.equal(own.index(), 1);
    stage.answers(async () => {
      throw new Error('the store did not answer');
    });
    for (const ms of [RENEW_EVERY_MS, RENEW_EVERY_MS]) {
      stage.pass(ms);
      await stage.renew();
      assert.equal(own.index(), 1);
    }
    stage.pass(LEASE_MS - 2 * RENEW_EVERY_MS - 1_001);
    assert.equal(own.index(), 1);
    stage.pass(1);
    assert.equal(own.index(), 0);
    assert.deepEqual(stage.said, ['relayer account leased 0xa1', 'the relayer account could not be leased']);
  });

  it('is shared while none is free, and another one as soon as there is one', async () => {
    const stage = open();
    const own = stage.start();
    await stage.settled();
    assert.equal(own.index(), 0);
    await stage.renew();
    stage.answers(async () => '0xa1');
    await stage.renew();
    assert.equal(own.index(), 1);
    stage.answers(async () => undefined);
    await stage.renew();
    assert.equal(own.index(), 0, 'the lease has gone to another process');
    assert.deepEqual(stage.said, [
      'no relayer account is free',
      'relayer account leased 0xa1',
      'no relayer account is free',
    ]);
  });

  it('is given back at the end, also when the store does not answer', async () => {
    const stage = open();
    stage.answers(async () => '0xa1');
    const own = stage.start();
    await stage.settled();
    await own.close();
    assert.deepEqual(stage.released, [stage.asked[0]?.owner]);
    assert.equal(own.index(), 0);
    await stage.renew();
    assert.equal(stage.asked.length, 1, 'no renewal follows');
  });
});
