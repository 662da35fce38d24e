import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import type { MandateClaim } from '../../src/mandates/register.ts';
import type { PaymentLedger, PaymentRecord, PaymentTerms, Reservation } from '../../src/payments/ledger/ledger.ts';
import { AT, claimOf, mandateText, useOf } from '../mandates/claims.ts';
import { event, holder, move, recordIn, terms } from '../payments/ledger/samples.ts';
import { clockPast, done, LEASE_MS, type OpenStore, opened } from './opened.ts';

/** Callers at once, and how many of them a budget allows. */
const CALLERS = 200;
const BUDGET = 100;

export const reserveWith = (ledger: PaymentLedger, claim: MandateClaim, changes: Partial<PaymentTerms> = {}) =>
  ledger.reserve({
    terms: terms(randomUUID(), { mandate: mandateText(claim), ...changes }),
    owner: randomUUID(),
    leaseMs: LEASE_MS,
  });
const budget = (id: string, units = 1) => [useOf(id, { units: `${units}`, budgetUnits: `${BUDGET}` })];
export const refused = (answer: Reservation): string => (answer.kind === 'mandate' ? answer.reason : answer.kind);
const settled = async (ledger: PaymentLedger, record: PaymentRecord): Promise<PaymentRecord> =>
  done(await ledger.advance(move(done(await ledger.advance(move(record, 'settling'))), 'settled')));

/** Payments that are made under mandates. */
export function mandateContract(name: string, open: OpenStore): void {
  describe(`${name}: payments with mandates`, () => {
    const { store } = opened(open);

    it('keep the mandate with the record, and need it once: a repeated payment needs none', async () => {
      const { ledger } = store();
      const claim = claimOf();
      const wanted = terms(randomUUID(), { mandate: mandateText(claim) });
      const command = { terms: wanted, owner: 'buyer', leaseMs: LEASE_MS };
      const first = await ledger.reserve(command);
      assert.equal(recordIn(first).mandate, wanted.mandate);
      assert.deepEqual(await ledger.reserve(command), first);
      assert.equal((await ledger.read(wanted.payId))?.mandate, wanted.mandate);
      await ledger.note({ ...holder(recordIn(first)), leaseMs: 0 });
      const { mandate: _used, ...without } = wanted;
      const resumed = await ledger.reserve({ terms: without, owner: 'later', leaseMs: LEASE_MS });
      assert.ok(resumed.kind === 'granted' && resumed.record.mandate === wanted.mandate);
      // Another mandate beside a known payment is not looked at, and not used up.
      const other = claimOf();
      const third = { ...without, mandate: mandateText(other) };
      assert.equal((await ledger.reserve({ terms: third, owner: 'third', leaseMs: LEASE_MS })).kind, 'in_flight');
      assert.equal(refused(await reserveWith(ledger, other)), 'granted');
    });

    it('write nothing when the mandate is used: no record, no work, and no use of another mandate', async () => {
      const { ledger, census } = store();
      const claim = claimOf(undefined, { open: budget('shared') });
      await reserveWith(ledger, claim);
      const before = (await census()).open;
      const wanted = terms(randomUUID(), { mandate: mandateText({ ...claim, open: budget('untouched', BUDGET) }) });
      const answer = await ledger.reserve({ terms: wanted, owner: 'buyer', leaseMs: LEASE_MS });
      assert.deepEqual(answer, { kind: 'mandate', reason: 'replayed' });
      assert.equal(await ledger.read(wanted.payId), undefined);
      assert.equal((await census()).open, before);
      assert.equal(
        refused(await reserveWith(ledger, claimOf(undefined, { open: budget('untouched', BUDGET) }))),
        'granted',
      );
    });

    it('refuse an invalid mandate, before anything is written', async () => {
      const { ledger } = store();
      for (const mandate of ['', 'eyJ', '{}', mandateText({ ...claimOf(), once: [] })]) {
        const wanted = terms(randomUUID(), { mandate });
        await assert.rejects(ledger.reserve({ terms: wanted, owner: 'buyer', leaseMs: LEASE_MS }), {
          name: 'LedgerCorruption',
        });
        assert.equal(await ledger.read(wanted.payId), undefined);
      }
    });

    it('give it back when the reservation is discarded or the payment refused, once', async () => {
      const { ledger } = store();
      const claim = claimOf(undefined, { open: [useOf(randomUUID())] });
      const first = recordIn(await reserveWith(ledger, claim));
      const held = holder(first);
      assert.equal((await ledger.discard({ ...held, owner: 'other' }, [])).kind, 'fenced');
      assert.equal(refused(await reserveWith(ledger, claim)), 'replayed');
      assert.equal((await ledger.discard(held, [])).kind, 'gone');
      const second = recordIn(await reserveWith(ledger, claim));
      // A late or repeated end takes nothing from the present holder.
      assert.equal((await ledger.discard(held, [])).kind, 'gone');
      assert.equal(refused(await reserveWith(ledger, claim)), 'replayed');
      const refusal = move(done(await ledger.advance(move(second, 'settling'))), 'refused');
      done(await ledger.advance(refusal));
      const third = recordIn(await reserveWith(ledger, claim));
      done(await ledger.advance(refusal));
      assert.equal(refused(await reserveWith(ledger, claim)), 'replayed');
      await settled(ledger, third);
      assert.equal(refused(await reserveWith(ledger, claim)), 'replayed');
    });

    it('hold it while the outcome is open, and spend it once when they are settled', async () => {
      const { ledger } = store();
      const id = randomUUID();
      const costs = (units: number) => claimOf(undefined, { open: budget(id, units) });
      const record = recordIn(await reserveWith(ledger, costs(60)));
      const settling = done(await ledger.advance(move(record, 'settling')));
      const uncertain = done(await ledger.note({ ...holder(settling), leaseMs: 0 }));
      assert.equal(refused(await reserveWith(ledger, costs(41))), 'budget_exceeded');
      const heir = recordIn(await ledger.reserve({ terms: uncertain, owner: 'heir', leaseMs: LEASE_MS }));
      const settlement = move(heir, 'settled', { events: [event('payment.settled', heir.requestId)] });
      const paid = done(await ledger.advance(settlement));
      assert.deepEqual(await ledger.advance(settlement), { kind: 'done', record: paid });
      assert.equal((await ledger.discard(holder(paid), [])).kind, 'illegal');
      assert.equal(refused(await reserveWith(ledger, costs(41))), 'budget_exceeded');
      const rest = recordIn(await reserveWith(ledger, costs(40)));
      assert.equal(refused(await reserveWith(ledger, costs(1))), 'budget_exceeded');
      // Once paid, no later state touches it.
      const failed = done(await ledger.advance(move(paid, 'undelivered')));
      done(await ledger.advance(move(failed, 'refundDue')));
      assert.equal(refused(await reserveWith(ledger, costs(1))), 'budget_exceeded');
      assert.equal((await ledger.discard(holder(rest), [])).kind, 'gone');
      assert.equal(refused(await reserveWith(ledger, costs(40))), 'granted');
    });

    it(`let ${BUDGET} of ${CALLERS} have a budget for ${BUDGET}, and one of a hundred a mandate`, async () => {
      const { ledger } = store();
      const id = randomUUID();
      const answers = await Promise.all(
        Array.from({ length: CALLERS }, () => reserveWith(ledger, claimOf(undefined, { open: budget(id) }))),
      );
      assert.deepEqual(tally(answers.map(refused)), { granted: BUDGET, budget_exceeded: CALLERS - BUDGET });
      const claim = claimOf();
      const copies = await Promise.all(Array.from({ length: 100 }, () => reserveWith(ledger, claim)));
      assert.deepEqual(tally(copies.map(refused)), { granted: 1, replayed: 99 });
    });

    it('count on the clock of the store: a mandate is forgotten after its own time', async () => {
      const { ledger } = store();
      const claim = claimOf(undefined, { onceUntil: AT + 0.001, open: [useOf(randomUUID(), undefined, AT + 0.001)] });
      const { reservedAt } = recordIn(await reserveWith(ledger, claim));
      await clockPast(store, reservedAt + 1);
      assert.equal(refused(await reserveWith(ledger, claim)), 'granted');
    });
  });
}

function tally(answers: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(answers, (answer) => answer)).map(([k, v]) => [k, v?.length ?? 0]),
  );
}

const RESERVED = { kind: 'reserved' };
const REPLAYED = { kind: 'refused', reason: 'replayed' };

/** Calls that pay nothing and need a mandate, on the register that payments use. */
export function freeMandateContract(name: string, open: OpenStore): void {
  describe(`${name}: free calls with mandates`, () => {
    const { store } = opened(open);
    const use = (claim: MandateClaim, call: string = randomUUID()) => store().mandates.reserve(call, claim);

    it('use a mandate once, and are answered the same when they ask again', async () => {
      const claim = claimOf();
      const call = randomUUID();
      for (const _ of ['once', 'twice']) assert.deepEqual(await use(claim, call), RESERVED);
      assert.deepEqual(await use(claim), REPLAYED);
    });

    it('spend it by a commit, have it back by a release, and hold it with neither', async () => {
      const { mandates } = store();
      const id = randomUUID();
      const costs = (units: number) => claimOf(undefined, { open: budget(id, units) });
      const [spent, given, held] = ['spent', 'given', 'held'].map(() => randomUUID()) as [string, string, string];
      const back = costs(30);
      for (const [call, claim] of [
        [spent, costs(30)],
        [given, back],
        [held, costs(40)],
      ] as const)
        assert.deepEqual(await use(claim, call), RESERVED);
      assert.deepEqual(await use(costs(1)), { kind: 'refused', reason: 'budget_exceeded' });
      for (const _ of ['once', 'twice']) {
        await mandates.finish(spent, 'commit');
        await mandates.finish(given, 'release');
      }
      // What was committed is not released, what was released is not committed.
      await mandates.finish(spent, 'release');
      await mandates.finish(given, 'commit');
      assert.deepEqual(await use(costs(31)), { kind: 'refused', reason: 'budget_exceeded' });
      assert.deepEqual(await use(back), RESERVED);
      await mandates.finish(randomUUID(), 'release');
    });

    it('share the register with payments', async () => {
      const { ledger } = store();
      const claim = claimOf();
      assert.deepEqual(await use(claim), RESERVED);
      assert.equal(refused(await reserveWith(ledger, claim)), 'replayed');
      const other = claimOf();
      const record = recordIn(await reserveWith(ledger, other));
      assert.deepEqual(await use(other), REPLAYED);
      await ledger.discard(holder(record), []);
      assert.deepEqual(await use(other), RESERVED);
    });

    it('refuse what is no claim and no name as a bug of the caller', async () => {
      await assert.rejects(use({ ...claimOf(), once: [] }), RangeError);
      await assert.rejects(use(claimOf(), ''), RangeError);
      await assert.rejects(store().mandates.finish('n'.repeat(257), 'commit'), RangeError);
    });

    it('take any text for an id', async () => {
      const once = ['j:\u{1f4b6} Zürich\0\n"\\ {}'];
      assert.deepEqual(await use(claimOf(undefined, { once })), RESERVED);
      assert.deepEqual(await use(claimOf(undefined, { once })), REPLAYED);
    });
  });
}
