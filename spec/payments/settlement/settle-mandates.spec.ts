import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { MandateClaim } from '../../../src/mandates/register.ts';
import type { PaymentTerms } from '../../../src/payments/ledger/ledger.ts';
import { LEASE_MS } from '../../../src/payments/settlement/attempt.ts';
import { joining } from '../../../src/payments/settlement/settle.ts';
import type { SettlementRequest, SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { claimOf, mandateText, useOf } from '../../mandates/claims.ts';
import { reconcilerBench } from './reconciler-bench.ts';
import { EXPIRED, freshTerms, PAID, SPENT, worldOfEachTest } from './world.ts';

/** The refusal that a call carries whose mandate no longer verifies. */
const NO_MANDATE = 'mandate_expired';
const BUDGET = '100';

describe('a purchase with a mandate', () => {
  const world = worldOfEachTest();
  const { settleOnce, requestWith, settler, later, record, state } = world;
  let claim: MandateClaim;
  /** The next purchase under the same open mandate. */
  const another = (units: string): PaymentTerms => {
    const open = [useOf('budget', { units, budgetUnits: BUDGET })];
    return { ...freshTerms(), mandate: mandateText(claimOf(undefined, { open })) };
  };
  beforeEach(() => {
    claim = claimOf(undefined, { open: [useOf('budget', { units: '60', budgetUnits: BUDGET })] });
    world.terms = { ...world.terms, mandate: mandateText(claim) };
  });
  const bench = reconcilerBench(world);
  const reconcile = (): Promise<void> => bench.open().round();
  /** What is left of the budget, found by reservations that are discarded. */
  const left = async (): Promise<number> => {
    for (const units of [100, 40]) {
      const terms = another(`${units}`);
      const answer = await world.ledger.reserve({ terms, owner: 'probe', leaseMs: LEASE_MS });
      if (answer.kind !== 'granted') continue;
      await world.ledger.discard({ payId: terms.payId, owner: 'probe', fence: 1, step: 'probe' }, []);
      return units;
    }
    return 0;
  };
  const passing = (changes: Partial<Pick<typeof world, 'reachable' | 'gateOpen'>>) => {
    Object.assign(world, changes);
    return { kind: 'valid' } as const;
  };
  const otherPayment = (mandate = mandateText(claim)): Promise<SettlementResult> =>
    settleOnce({ terms: { ...freshTerms(), mandate } });

  it('spends its share with the money, and the same mandate buys nothing with another payment', async () => {
    assert.equal((await settleOnce()).kind, 'paid');
    assert.equal(await left(), 40);
    world.peer.asked.length = 0;
    assert.deepEqual(await otherPayment(), { kind: 'mandate_used', reason: 'replayed' });
    assert.deepEqual(world.peer.names(), [], 'the rail was not asked');
  });

  it('is refused for its budget before the rail is asked', async () => {
    assert.equal((await settleOnce()).kind, 'paid');
    world.peer.asked.length = 0;
    assert.deepEqual(await settleOnce({ terms: another('41') }), { kind: 'mandate_used', reason: 'budget_exceeded' });
    assert.deepEqual(world.peer.names(), []);
    assert.equal((await settleOnce({ terms: another('40') })).kind, 'paid');
  });

  it('has its mandate back when the payment is refused before it is sent, or its nonce has been spent elsewhere', async () => {
    for (const refusal of [{ kind: 'refused', reason: 'insufficient_funds', nonceSpent: false } as const, SPENT]) {
      world.peer.script.verify = async () => refusal;
      world.peer.script.reconcile = async () => EXPIRED;
      assert.equal((await settleOnce()).kind, 'refused');
      assert.equal(await left(), 100);
    }
    world.peer.script.verify = async () => ({ kind: 'valid' });
    assert.equal((await otherPayment()).kind, 'paid');
  });

  it('is held by a settlement that was withdrawn, which only its own proof goes on with, until the chain shows it worthless', async () => {
    world.peer.script.settle = async () => ({ kind: 'withdrawn', reason: 'relayer_unfunded', cause: 'no gas' });
    assert.equal((await settleOnce()).kind, 'postponed');
    assert.deepEqual([await state(), await left()], ['withdrawn', 40]);
    assert.deepEqual(await otherPayment(), { kind: 'mandate_used', reason: 'replayed' });
    assert.equal((await settleOnce({ terms: { ...world.terms, mandate: mandateText(claimOf()) } })).kind, 'in_flight');
    later(600_000);
    world.peer.script.reconcile = async () => EXPIRED;
    await reconcile();
    assert.deepEqual([await state(), await left()], ['refused', 100]);
  });

  for (const [why, kind, script] of [
    ['the gas is gone', 'postponed', { verify: async () => ({ kind: 'unfunded', cause: 'no gas' }) }],
    ['the rail has no verdict', 'unavailable', { verify: async () => ({ kind: 'unavailable', cause: 'down' }) }],
    ['the chain shows the payment worthless', 'refused', { settle: async () => EXPIRED }],
    ['the backend is away', 'postponed', { verify: async () => passing({ reachable: false }) }],
    ['the gate closes', 'gate_closed', { verify: async () => passing({ gateOpen: false }) }],
  ] satisfies readonly (readonly [string, SettlementResult['kind'], Partial<typeof world.peer.script>])[])
    it(`has its share back when ${why}`, async () => {
      Object.assign(world.peer.script, script);
      assert.equal((await settleOnce()).kind, kind);
      assert.equal(await left(), 100);
    });

  it('holds its share while the outcome is open; a reconciler that finds the payment spends it', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    assert.equal((await settleOnce()).kind, 'uncertain');
    assert.equal(await left(), 40);
    assert.deepEqual(await otherPayment(), { kind: 'mandate_used', reason: 'replayed' });
    world.peer.script.reconcile = async () => PAID;
    later(LEASE_MS);
    await reconcile();
    assert.ok(['settled', 'undelivered'].includes(String(await state())));
    assert.equal(await left(), 40);
    assert.deepEqual(await otherPayment(), { kind: 'mandate_used', reason: 'replayed' });
  });

  it('holds its share while the outcome is open; a reconciler that finds it worthless gives it back', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    assert.equal((await settleOnce()).kind, 'uncertain');
    world.peer.script.reconcile = async () => EXPIRED;
    later(LEASE_MS);
    await reconcile();
    assert.equal(await state(), 'refused');
    assert.equal(await left(), 100);
    world.peer.script.settle = async () => PAID;
    assert.equal((await otherPayment()).kind, 'paid');
  });

  it('whose process died between reservation and settlement is free again when the reservation is swept', async () => {
    await world.ledger.reserve({ terms: world.terms, owner: 'dead', leaseMs: LEASE_MS });
    assert.equal((await otherPayment()).kind, 'mandate_used');
    later(LEASE_MS);
    await reconcile();
    assert.equal(await record(), undefined);
    assert.equal(await left(), 100);
    assert.equal((await otherPayment()).kind, 'paid');
  });

  it('is resumed by its payment alone, hours later and without a mandate', async () => {
    const result = await settleOnce();
    assert.ok(result.kind === 'paid');
    await world.failDelivery(result);
    const { mandate: _expired, ...terms } = world.terms;
    later(3 * 60 * 60 * 1_000);
    const resumed = await settleOnce({ terms, refusal: NO_MANDATE });
    assert.ok(resumed.kind === 'paid');
    assert.equal(resumed.record.mandate, world.terms.mandate, 'its receipt still knows it');
    assert.deepEqual(world.peer.names(), ['verify', 'settle'], 'paid once');
  });

  it('never goes on with a reservation that was left without one: it would settle and use nothing up', async () => {
    const { mandate: _none, ...terms } = world.terms;
    await world.diesReserved(terms);
    assert.equal((await settleOnce()).kind, 'in_flight');
    assert.equal(await record(), undefined, 'and the next attempt begins anew');
    assert.deepEqual(world.peer.names(), []);
    assert.equal((await settleOnce()).kind, 'paid');
    assert.equal(await left(), 40);
  });

  it('never goes on with a reservation under another mandate: what was checked now is what counts', async () => {
    const dead = mandateText(claimOf(undefined, { open: [useOf('old', { units: '60', budgetUnits: '60' })] }));
    await world.diesReserved({ ...world.terms, mandate: dead });
    const mandate = mandateText(claim);
    const joined = joining(settler(), world.ledger, world.time);
    const result = await joined.settle(requestWith({ terms: { ...world.terms, mandate } }));
    assert.ok(result.kind === 'paid');
    assert.equal(result.record.mandate, mandate);
    assert.equal(await left(), 40);
    assert.equal((await otherPayment(dead)).kind, 'paid', 'the other one is as good as before');
  });

  it('goes on with a reservation under the same mandate, checked once more', async () => {
    await world.diesReserved();
    const mandate = mandateText({ ...claim, at: claim.at + LEASE_MS / 1_000 });
    assert.equal((await settleOnce({ terms: { ...world.terms, mandate } })).kind, 'paid');
    assert.equal(await left(), 40);
  });
});

describe('a call that is let through without a mandate, for a record that is gone', () => {
  const world = worldOfEachTest();
  const { settleOnce, record } = world;
  const bring = (changes: Partial<SettlementRequest> = {}): Promise<SettlementResult> =>
    settleOnce({ refusal: NO_MANDATE, ...changes });
  const neverSettled = async (): Promise<void> => {
    assert.ok(!world.peer.names().includes('settle') && !world.peer.names().includes('verify'));
    assert.equal(await record(), undefined, 'nothing is left that a reconciler could settle');
  };

  it('settles nothing that the chain does not show as paid, whatever it shows', async () => {
    for (const reading of [{ kind: 'open' }, EXPIRED, { kind: 'unknown', cause: 'no answer' }] as const) {
      world.peer.script.reconcile = async () => reading;
      const result = await bring();
      assert.equal(result.kind, reading.kind === 'unknown' ? 'unavailable' : 'refused');
      if (result.kind === 'refused') assert.equal(result.owed.reason, NO_MANDATE);
      await neverSettled();
    }
  });

  it('settles nothing where no chain can be asked', async () => {
    world.peer.script.seesChain = false;
    const result = await bring();
    assert.ok(result.kind === 'refused' && result.owed.reason === NO_MANDATE);
    await neverSettled();
  });

  it('is given what the chain shows as paid: it was admitted before the store lost its data', async () => {
    world.peer.script.reconcile = async () => PAID;
    const result = await bring();
    assert.ok(result.kind === 'paid' && result.record.recovered === 'chain' && result.record.mandate === undefined);
    assert.ok(!world.peer.names().includes('settle'));
  });

  it('takes over a dead reservation only to delete it, and its mandate is free', async () => {
    const mandate = mandateText(claimOf());
    const terms = { ...world.terms, mandate };
    await world.diesReserved(terms);
    world.peer.script.reconcile = async () => ({ kind: 'open' });
    assert.equal((await bring()).kind, 'refused');
    await neverSettled();
    assert.equal((await settleOnce({ terms: { ...freshTerms(), mandate } })).kind, 'paid');
  });
});
