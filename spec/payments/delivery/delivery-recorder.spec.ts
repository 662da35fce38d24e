import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createDeliveryRecorder, type DeliveryWarnings } from '../../../src/payments/delivery/delivery-recorder.ts';
import {
  type Keeping,
  MAX_KEPT_BYTES,
  type PaymentLedger,
  type PaymentTerms,
} from '../../../src/payments/ledger/ledger.ts';
import { endCollecting } from '../../../src/payments/settlement/reconciler.ts';
import type { Paid } from '../../../src/payments/settlement/settlement-request.ts';
import { keptAnswer, sha256 } from '../ledger/samples.ts';
import { rest, virtualTime } from '../settlement/virtual-time.ts';
import { ANSWER, FAILED, KEEP_ANSWER_MS, worldOfEachTest } from '../settlement/world.ts';

describe('an answer that went out while another attempt took its record over', () => {
  const world = worldOfEachTest();
  const { pay, later, settleOnce, state, receipts } = world;

  it('is recorded as delivered once the other attempt ended: answer and refund are never both due', async () => {
    const first = await pay({ repeatable: false });
    later(8_000);
    const other = await settleOnce({ repeatable: false });
    assert.ok(other.kind === 'spent' && other.state === 'undelivered', 'the other one found a delivery that died');
    await world.deliver(first);
    assert.equal(await state(), 'delivered');
    const deliveries = (await receipts()).map(({ delivered }) => delivered);
    assert.deepEqual(deliveries, [true]);
  });

  it('makes no new record of one that the store lost', async () => {
    const first = await pay();
    later(26 * 60 * 60 * 1_000);
    await assert.rejects(world.deliver(first), /lost/);
    assert.equal(await state(), undefined);
  });
});

const DAY_MS = 24 * 60 * 60 * 1_000;
const GONE = { failure: { code: 'client_gone' }, requestWritten: true, repeatable: true } as const;

describe('the delivery recorder', () => {
  const world = worldOfEachTest();
  const { pay, recorder, facts, later, record, receipts, types, broken, silent } = world;
  const isKept = async (): Promise<boolean> => (await world.ledger.kept(world.terms.payId)) !== undefined;

  it('delivered: final, with receipt, events and answer in one write; the record forgets proof and request', async () => {
    const result = await pay();
    const given = facts(result, { answer: keptAnswer() });
    given.journal.record('resource.delivered');
    const writes: string[] = [];
    const counting = broken({
      advance: (command) => {
        writes.push(command.to);
        return world.ledger.advance(command);
      },
      note: async () => assert.fail('one write'),
    });
    await recorder(counting).delivered(result.record, given);
    assert.deepEqual(writes, ['delivered']);
    const { state, proof, backendRequest, dueAt } = (await record()) ?? {};
    assert.deepEqual([state, proof, backendRequest, dueAt], ['delivered', '{}', '{}', 0]);
    assert.equal((await types()).at(-1), 'resource.delivered');
    assert.deepEqual(
      (await receipts()).map(({ delivered, backendStatus }) => [delivered, backendStatus]),
      [[true, 200]],
    );
    assert.equal(world.held.size, 0);
  });

  const token = { tokenDigest: sha256('token') };
  const lives: readonly (readonly [string, Partial<PaymentTerms>, number])[] = [
    ['with a token for as long as is configured', token, KEEP_ANSWER_MS],
    ['with a token ten minutes at least where tasks are asked about', { ...token, channel: 'a2a' }, 600_000],
    ['with a key for a day', { keyDigest: sha256('key') }, DAY_MS],
    ['with a key for a day, whatever token came with it', { ...token, keyDigest: sha256('key') }, DAY_MS],
  ];
  for (const [rule, terms, ms] of lives)
    it(`a delivered answer is readable ${rule}`, async () => {
      world.terms = { ...world.terms, ...terms };
      const result = await pay();
      await world.deliver(result, { answer: keptAnswer() });
      later(ms - 1);
      assert.equal(await isKept(), true);
      later(1);
      assert.equal(await isKept(), false);
    });

  it('a delivered answer is not kept when no secret came with its call: an onlooker could get it', async () => {
    const result = await pay();
    await world.deliver(result, { answer: keptAnswer() });
    assert.equal(await isKept(), false);
  });

  for (const [bytes, kept] of [
    [MAX_KEPT_BYTES, true],
    [MAX_KEPT_BYTES + 1, false],
  ] as const)
    it(`an answer of ${bytes} bytes is ${kept ? 'kept' : 'delivered and not kept'}`, async () => {
      world.terms = { ...world.terms, ...token };
      const result = await pay();
      await world.deliver(result, { answer: keptAnswer(new Uint8Array(bytes)) });
      assert.equal((await record())?.state, 'delivered');
      assert.equal(await isKept(), kept);
    });

  describe('undelivered', () => {
    it('with the whole answer: kept to the end of the window, and not due before', async () => {
      const result = await pay();
      later(5_000);
      await recorder().undelivered(result.record, { ...facts(result, { answer: keptAnswer() }), ...GONE });
      const { state, reason, dueAt, leaseUntil } = (await record()) ?? {};
      const windowEnds = world.clock - 5_000 + DAY_MS;
      assert.deepEqual([state, reason, leaseUntil], ['undelivered', 'answer_kept', 0]);
      // Counted from what the record knew when it was leased: late by as long as the delivery took,
      // never early.
      assert.ok((dueAt ?? 0) >= windowEnds && (dueAt ?? 0) <= windowEnds + 5_000);
      later(DAY_MS - 5_001);
      assert.equal(await isKept(), true);
    });

    const pauses: readonly (readonly [boolean, string, number])[] = [
      [true, 'a repeatable call is fetched again after a second', 1_000],
      [false, 'one that may not be repeated waits for its buyer', DAY_MS],
    ];
    for (const [repeatable, rule, ms] of pauses)
      it(rule, async () => {
        const result = await pay();
        await world.failDelivery(result, { backendStatus: 500, repeatable });
        const { dueAt = 0, reason } = (await record()) ?? {};
        assert.deepEqual([dueAt - world.clock, reason], [ms, 'request_may_be_written']);
      });

    it('records whether the request can have reached the backend, and the receipt has the failure', async () => {
      const result = await pay();
      const unwritten = { ...FAILED, requestWritten: false };
      await recorder().undelivered(result.record, { ...facts(result, { backendStatus: 0 }), ...unwritten });
      const { reason, tries } = (await record()) ?? {};
      assert.deepEqual([reason, tries], ['request_not_written', 1]);
      const [receipt] = await receipts();
      const metadata = { callId: world.terms.callId, backendErrorCode: 'backend_status_500' };
      assert.deepEqual([receipt?.delivered, receipt?.metadata], [false, metadata]);
    });

    it('a delivery that a later request collects names it, under the same receipt', async () => {
      const first = await pay();
      await world.failDelivery(first);
      const second = await pay();
      await world.deliver(second, { requestId: 'req_later' });
      const [receipt, ...others] = await receipts();
      assert.deepEqual([receipt?.id, receipt?.requestId, others.length], [world.terms.receiptId, 'req_later', 0]);
      const { callId, requestId } = world.terms;
      assert.deepEqual(receipt?.metadata, { callId, resumedFrom: requestId });
    });
  });

  describe('of an answer that was kept before', () => {
    /** What the writes of a ledger bring to keep. */
    const keepings: (Keeping | undefined)[] = [];
    const watched = () => {
      keepings.length = 0;
      return broken({
        advance: (command) => {
          keepings.push(command.keeping);
          return world.ledger.advance(command);
        },
      });
    };
    const paidAfter = async (): Promise<Paid> => {
      const result = await world.settleAfter();
      assert.ok(result.kind === 'paid');
      return result;
    };

    it('delivered: it stays for the time of a delivered one, and is not written again', async () => {
      world.terms = { ...world.terms, ...token };
      const result = await paidAfter();
      await recorder(watched()).delivered(result.record, facts(result, { answer: ANSWER, keptBefore: true }));
      assert.deepEqual(keepings, [{ forMs: KEEP_ANSWER_MS }]);
      later(KEEP_ANSWER_MS - 1);
      assert.deepEqual(await world.ledger.kept(world.terms.payId), ANSWER);
      later(1);
      assert.equal(await isKept(), false);
    });

    it('delivered without a secret: it is gone at once', async () => {
      const result = await paidAfter();
      assert.equal(await isKept(), true);
      await recorder(watched()).delivered(result.record, facts(result, { answer: ANSWER, keptBefore: true }));
      assert.deepEqual([keepings, await isKept()], [[{ forMs: 0 }], false]);
    });

    for (const answer of [ANSWER, undefined])
      it(`not delivered, ${answer === undefined ? 'its copy broken off' : 'read to its end'}: it stays to the end of the window, and is not fetched`, async () => {
        const result = await paidAfter();
        const given = facts(result, { answer, keptBefore: true });
        await recorder(watched()).undelivered(result.record, { ...given, ...GONE });
        assert.deepEqual(keepings, [{ forMs: DAY_MS }]);
        const { state, reason, dueAt = 0 } = (await record()) ?? {};
        assert.deepEqual([state, reason, dueAt - world.clock], ['undelivered', 'answer_kept', DAY_MS]);
        assert.partialDeepStrictEqual((await receipts())[0]?.metadata, { answerKept: true });
        assert.equal(await isKept(), true);
      });

    it('also of a payment that was settled first, and whose answer an earlier attempt kept', async () => {
      const first = await pay();
      await world.failDelivery(first, { answer: ANSWER });
      const second = await pay();
      assert.deepEqual(second.kept, ANSWER);
      await world.failDelivery(second, { answer: undefined, keptBefore: true, failure: { code: 'client_gone' } });
      assert.deepEqual((await pay()).kept, ANSWER);
    });
  });

  it('what cannot be written is a warning, the lease is dropped, and the events still reach the feed', async () => {
    const result = await pay();
    const warned: string[] = [];
    const mute = createDeliveryRecorder(
      broken({ advance: silent }),
      () => 0,
      warningWith(({ payId }) => void warned.push(payId)),
      world.time,
    );
    const given = facts(result);
    given.journal.record('resource.delivered');
    await mute.delivered(result.record, given);
    assert.deepEqual([warned, world.held.size], [[world.terms.payId], 0]);
    assert.deepEqual(world.flushedTypes(), ['resource.delivered']);
  });

  it('a delivery that another attempt has overtaken changes nothing', async () => {
    const result = await pay();
    later(8_000);
    const second = await pay();
    const warned: unknown[] = [];
    const late = createDeliveryRecorder(
      world.ledger,
      () => 0,
      warningWith(({ err }) => void warned.push(err)),
      world.time,
    );
    await late.delivered(result.record, facts(result, { answer: keptAnswer() }));
    assert.match(String(warned[0]), /fenced/);
    assert.deepEqual([(await record())?.state, await isKept()], ['settled', false]);
    await world.deliver(second);
    assert.equal((await record())?.state, 'delivered');
  });
});

/** Warnings of which only those of a delivery that is not written may come. */
function warningWith(unwritten: DeliveryWarnings['unwritten']): DeliveryWarnings {
  return { unwritten, unmarked: ({ err }) => assert.fail(String(err)) };
}

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
    await own.undelivered(paid.record, { ...facts(paid), ...GONE, sent: { begun: true, bytes: 17, of: 17 } });
    later(60_000);
    const again = await pay();
    await own.sending(again.record);
    await own.undelivered(again.record, { ...facts(again), ...GONE, sent: { begun: true, bytes: 5, of: 0 } });
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
        ...GONE,
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
    await own.undelivered(paid.record, { ...facts(paid), ...GONE, sent: { begun: false, bytes: 0, of: 9 } });
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
