import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { endCollecting } from '../../../src/payments/settlement/reconciler.ts';
import type { Paid } from '../../../src/payments/settlement/settlement-request.ts';
import { keptAnswer } from '../ledger/samples.ts';
import { rest, virtualTime } from './virtual-time.ts';
import { worldOfEachTest } from './world.ts';

const FAILED = { failure: { code: 'client_gone' }, requestWritten: true, repeatable: true } as const;

describe('an answer that has begun to leave', () => {
  const world = worldOfEachTest();
  const { pay, settleOnce, recorder, facts, record, receipts, later } = world;
  const uncertain = async () =>
    (await receipts()).map(({ delivered, metadata }) => [delivered, metadata?.deliveryUncertain]);

  /** Its process dies: nothing more is written, and the lease ends by itself. */
  const dies = async ({ record: paid }: Paid): Promise<void> => {
    await recorder().sending(paid);
    assert.equal((await record())?.sending, 'begun');
    later(60_000);
  };

  /** An answer that waits for its mark, over a ledger with these notes. */
  const leavesWith = (note: PaymentLedger['note'], { record: paid }: Paid) => {
    const leaving = { may: false, sending: Promise.resolve() };
    leaving.sending = recorder(world.broken({ note }))
      .sending(paid)
      .then(() => {
        leaving.may = true;
      });
    return leaving;
  };

  it('waits until the store has its mark', async () => {
    const paid = await pay();
    const reply = Promise.withResolvers<void>();
    const note: PaymentLedger['note'] = async (command) => {
      await reply.promise;
      return world.ledger.note(command);
    };
    const leaving = leavesWith(note, paid);
    await rest();
    assert.equal(leaving.may, false);
    reply.resolve();
    await leaving.sending;
    assert.equal((await record())?.sending, 'begun');
  });

  it('waits twenty seconds for a store that is away, then leaves and is marked when the store is back', async () => {
    const paid = await pay();
    let isAway = true;
    const note: PaymentLedger['note'] = (command) => (isAway ? world.silent() : world.ledger.note(command));
    const time = virtualTime();
    world.time = { ...time, slept: [] };
    const leaving = leavesWith(note, paid);
    await time.pass(19_900);
    assert.deepEqual([leaving.may, world.unmarked], [false, []]);
    await time.pass(200);
    await leaving.sending;
    assert.deepEqual(world.unmarked, [world.terms.payId]);
    isAway = false;
    await time.pass(100);
    assert.equal((await record())?.sending, 'begun');
  });

  it('of an attempt that was overtaken is marked once the other attempt has ended, and delivered by the first one', async () => {
    const paid = await pay();
    later(60_000);
    const other = await pay();
    await world.failDelivery(other);
    const own = recorder();
    await own.sending(paid.record);
    assert.equal((await record())?.sending, 'begun');
    await own.delivered(paid.record, facts(paid));
    assert.deepEqual(await uncertain(), [[true, undefined]]);
  });

  it('of an attempt that stood still while its payment was sent back does not leave', async () => {
    const paid = await pay();
    later(60_000);
    await world.failDelivery(await pay());
    const undelivered = await record();
    assert.ok(undelivered !== undefined);
    assert.equal((await endCollecting(world.ledger, undelivered))?.state, 'refundDue');
    assert.equal(await recorder().sending(paid.record), false);
  });

  it('is marked within a tenth of a second of the return of a store that was away', async () => {
    const paid = await pay();
    const away = 12;
    let tries = 0;
    const pauses: number[] = [];
    const sleep = async (ms: number): Promise<void> => void pauses.push(ms);
    world.time = { ...world.time, sleep };
    const note: PaymentLedger['note'] = (command) => {
      tries += 1;
      return tries <= away ? world.silent() : world.ledger.note(command);
    };
    await recorder(world.broken({ note })).sending(paid.record);
    assert.equal((await record())?.sending, 'begun');
    assert.deepEqual([pauses.length, Math.max(...pauses)], [away, 100]);
  });

  it('and whose process died before it recorded that: the first attempt that finds it writes a receipt', async () => {
    await dies(await pay());
    assert.equal((await settleOnce()).kind, 'paid');
    assert.deepEqual(await uncertain(), [[false, true]]);
  });

  it('also where nothing may be repeated, and where the answer waits for its buyer', async () => {
    await dies(await pay());
    const parked = await settleOnce({ repeatable: false });
    assert.ok(parked.kind === 'spent' && parked.state === 'undelivered');
    assert.deepEqual(await uncertain(), [[false, true]]);

    world.terms = { ...world.terms, payId: '1'.repeat(64), receiptId: world.terms.receiptId.replace(/.$/, '0') };
    const first = await pay();
    await world.failDelivery(first, { answer: keptAnswer() });
    await dies(await pay({ repeatable: false }));
    assert.equal((await settleOnce({ repeatable: false })).kind, 'paid');
    const [newest, ...others] = await receipts();
    const found = [newest, ...others].find(({ payment } = {} as never) => payment?.replayKey === world.terms.payId);
    assert.deepEqual([found?.metadata?.deliveryUncertain, found?.metadata?.answerKept], [true, true]);
  });

  it('stays uncertain through later attempts that fail, until one delivers', async () => {
    await dies(await pay());
    const second = await pay();
    await recorder().sending(second.record);
    await world.failDelivery(second);
    assert.deepEqual([(await record())?.sending, ...(await uncertain())], ['begun', [false, true]]);
    later(60_000);
    const third = await pay();
    await recorder().sending(third.record);
    await world.deliver(third);
    assert.deepEqual(await uncertain(), [[true, undefined]]);
  });

  it('and was left by its buyer: uncertain, with what left of it, and the receipts after it say the most', async () => {
    const paid = await pay();
    const own = recorder();
    await own.sending(paid.record);
    await own.undelivered(paid.record, { ...facts(paid), ...FAILED, sent: { begun: true, bytes: 17, of: 17 } });
    later(60_000);
    const again = await pay();
    await own.sending(again.record);
    await own.undelivered(again.record, { ...facts(again), ...FAILED, sent: { begun: true, bytes: 5, of: 0 } });
    const metadata = (await receipts()).map((one) => one.metadata);
    assert.partialDeepStrictEqual(metadata, [{ deliveryUncertain: true, sentBytes: 17, ofBytes: 17 }]);
    assert.deepEqual((await record())?.sendings, 2);
  });

  it('three times: the backend is not called again for it, and what is kept is given on', async () => {
    const own = recorder();
    const leaves = async (more = {}): Promise<void> => {
      const paid = await pay();
      await own.sending(paid.record);
      await own.undelivered(paid.record, {
        ...facts(paid),
        ...FAILED,
        sent: { begun: true, bytes: 1, of: 9 },
        ...more,
      });
      later(60_000);
    };
    await leaves();
    await leaves();
    await leaves({ answer: keptAnswer() });
    for (const _ of [1, 2]) await leaves({ keptBefore: true });
    later(-300_000);
    world.terms = { ...world.terms, payId: '2'.repeat(64), nonce: '0xother' };
    for (const _ of [1, 2, 3]) await leaves();
    const refused = await settleOnce();
    assert.ok(refused.kind === 'spent' && refused.state === 'undelivered', refused.kind);
  });

  it('and of which nothing left, as its own process knows: nothing is uncertain, and no delivery is counted', async () => {
    const paid = await pay();
    const own = recorder();
    await own.sending(paid.record);
    await own.undelivered(paid.record, { ...facts(paid), ...FAILED, sent: { begun: false, bytes: 0, of: 9 } });
    assert.equal((await record())?.sendings, 0);
    assert.deepEqual([(await record())?.sending, ...(await uncertain())], ['ended', [false, undefined]]);
    later(60_000);
    await pay();
    assert.deepEqual(await uncertain(), [[false, undefined]]);
  });

  it('of a process that died before the first byte: nothing is uncertain', async () => {
    await pay();
    later(60_000);
    assert.equal((await settleOnce()).kind, 'paid');
    assert.deepEqual(await uncertain(), [[false, undefined]]);
  });
});
