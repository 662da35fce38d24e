import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createDeliveryRecorder, type DeliveryWarnings } from '../../../src/payments/delivery/delivery-recorder.ts';
import { type Keeping, MAX_KEPT_BYTES, type PaymentTerms } from '../../../src/payments/ledger/ledger.ts';
import type { Paid } from '../../../src/payments/settlement/settlement-request.ts';
import { keptAnswer, sha256 } from '../ledger/samples.ts';
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
