import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import type { MandateClaim } from '../../src/mandates/register/register.ts';
import type { PaymentLedger, PaymentRecord, PaymentTerms, Reservation } from '../../src/payments/ledger/ledger.ts';
import { AT, claimOf, mandateText, useOf } from '../mandates/register/register-map.ts';
import { event, holder, move, recordIn, terms } from '../payments/ledger/samples.ts';
import { clockPast, done, LEASE_MS, type OpenStore, opened } from './opened.ts';

/** Callers at once, and how many of them a budget allows. */
export const CALLERS = 200;
export const BUDGET = 100;

export const reserveWith = (ledger: PaymentLedger, claim: MandateClaim, changes: Partial<PaymentTerms> = {}) =>
  ledger.reserve({
    terms: terms(randomUUID(), { mandate: mandateText(claim), ...changes }),
    owner: randomUUID(),
    leaseMs: LEASE_MS,
  });
export const budget = (id: string, units = 1) => [useOf(id, { units: `${units}`, budgetUnits: `${BUDGET}` })];
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

    it('refuse for each reason', async () => {
      const { ledger } = store();
      const rows = [
        ['open_mandate_spent', undefined],
        ['recurrence_exceeded', { maxOccurrences: 1 }],
        ['recurrence_too_soon', { periodStart: AT - 60 }],
        ['budget_exceeded', { units: '51', budgetUnits: '101' }],
      ] as const;
      for (const [reason, recurrence] of rows) {
        const use = [useOf(randomUUID(), recurrence)];
        assert.equal(refused(await reserveWith(ledger, claimOf(undefined, { open: use }))), 'granted');
        assert.equal(refused(await reserveWith(ledger, claimOf(undefined, { open: use }))), reason);
      }
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

    it('of a period keep it used while that of the period before ends late, either way', async () => {
      const { ledger } = store();
      for (const to of ['settled', 'refused'] as const) {
        const id = randomUUID();
        const inPeriod = (start: number, at: number) =>
          claimOf(undefined, { at, open: [useOf(id, { periodStart: start }, at + 3_600)] });
        const late = recordIn(await reserveWith(ledger, inPeriod(AT - 100, AT)));
        const settling = done(await ledger.advance(move(late, 'settling')));
        assert.equal(refused(await reserveWith(ledger, inPeriod(AT + 100, AT + 150))), 'granted');
        done(await ledger.advance(move(settling, to)));
        assert.equal(refused(await reserveWith(ledger, inPeriod(AT + 100, AT + 160))), 'recurrence_too_soon');
        assert.equal(refused(await reserveWith(ledger, inPeriod(AT + 200, AT + 250))), 'granted');
      }
    });

    it('keep the mandate in the record to their end', async () => {
      const { ledger } = store();
      const claim = claimOf();
      const record = await settled(ledger, recordIn(await reserveWith(ledger, claim)));
      const ended = done(await ledger.advance(move(record, 'delivered')));
      assert.equal(ended.mandate, mandateText(claim));
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
