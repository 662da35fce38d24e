import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  finishUses,
  type MandateClaim,
  type OpenMandateUse,
  type Recurrence,
  reserveUses,
} from '../../src/mandates/register.ts';
import { AT, claimOf, mapRows, useOf } from './claims.ts';

/** The store's clock, milliseconds: years away from the clock that mandates are checked with. */
const NOW = 1_900_000_000_000;
const DAY_S = 86_400;
const MAX_UNITS = String(Number.MAX_SAFE_INTEGER);

/**
 * A fresh register. `use`: another closed mandate under these open ones, presented `later` seconds
 * after the first.
 */
function register() {
  const rows = mapRows();
  const use = (open: readonly OpenMandateUse[], later = 0): { refusal: string | undefined; claim: MandateClaim } => {
    const claim = claimOf(undefined, { open, at: AT + later });
    return { claim, refusal: reserveUses(rows, claim, NOW) };
  };
  const end = (claim: MandateClaim, how: 'commit' | 'release'): void => finishUses(rows, claim, how, NOW);
  return { rows, use, end };
}

describe('what may be used once', () => {
  it('is refused a second time: the closed mandate under another checkout, and the checkout with another mandate', () => {
    const { rows } = register();
    assert.equal(reserveUses(rows, claimOf('a'), NOW), undefined);
    for (const once of [['m:a', 'j:b'], ['m:b', 'j:a'], ['m:a'], ['j:a']])
      assert.equal(reserveUses(rows, claimOf('b', { once }), NOW), 'replayed');
    assert.equal(reserveUses(rows, claimOf('b'), NOW), undefined);
  });

  it('is free after a release, not after a commit, and not while its end is open', () => {
    const { rows } = register();
    const claim = claimOf('a');
    reserveUses(rows, claim, NOW);
    finishUses(rows, claim, 'release', NOW);
    assert.equal(reserveUses(rows, claim, NOW), undefined);
    finishUses(rows, claim, 'commit', NOW);
    assert.equal(reserveUses(rows, claim, NOW), 'replayed');
  });

  it('counts for as long as its check leaves it, on the clock of the store, whatever the other clock shows', () => {
    const { rows } = register();
    reserveUses(rows, claimOf('a', { onceUntil: AT + 900 }), NOW);
    const last = NOW + 900_000 - 1;
    assert.equal(reserveUses(rows, claimOf('a'), last), 'replayed');
    assert.equal(reserveUses(rows, claimOf('a'), last + 1), undefined);
  });

  it('leaves everything as it was when it is refused', () => {
    const { rows } = register();
    reserveUses(rows, claimOf('a', { open: [useOf('spent')] }), NOW);
    const before = [new Map(rows.onceIds), new Map(rows.states)];
    for (const claim of [
      claimOf('b', { open: [useOf('other', {}), useOf('spent')] }),
      claimOf('a', { open: [useOf('other', {})] }),
      claimOf('c', { open: [useOf('other', {}), useOf('poor', { units: '2', budgetUnits: '1' })] }),
    ]) {
      assert.notEqual(reserveUses(rows, claim, NOW), undefined);
      assert.deepEqual([rows.onceIds, rows.states], before);
    }
  });
});

describe('an open mandate', () => {
  it('is used once, unless it recurs', () => {
    const { use, end } = register();
    const first = use([useOf('o')]);
    assert.equal(first.refusal, undefined);
    assert.equal(use([useOf('o')]).refusal, 'open_mandate_spent');
    end(first.claim, 'commit');
    assert.equal(use([useOf('o')]).refusal, 'open_mandate_spent');
    assert.equal(use([useOf('other')]).refusal, undefined);
  });

  it('is free again after a release, as if it had never been used', () => {
    const { rows, use, end } = register();
    for (const recurrence of [undefined, { maxOccurrences: 1, periodStart: AT - 5 }] as const) {
      const { claim } = use([useOf('o', recurrence)]);
      end(claim, 'release');
      assert.equal(rows.states.size, 0);
      const again = use([useOf('o', recurrence)]);
      assert.equal(again.refusal, undefined);
      end(again.claim, 'release');
    }
  });

  it('gives back no more than is pending for a use that the store has lost', () => {
    const { rows, use, end } = register();
    const costs = (units: string) => [useOf('o', { units, budgetUnits: '100' })];
    use(costs('40'));
    end(claimOf('lost', { open: costs('60') }), 'commit');
    assert.deepEqual([rows.states.get('o')?.spent, rows.states.get('o')?.pending], ['60', '0']);
  });

  it('is exact at the largest budget there is', () => {
    const { rows, use, end } = register();
    const costs = (units: string) => [useOf('o', { units, budgetUnits: MAX_UNITS })];
    const { claim } = use(costs(String(Number.MAX_SAFE_INTEGER - 1)));
    assert.equal(use(costs('2')).refusal, 'budget_exceeded');
    assert.equal(use(costs(MAX_UNITS)).refusal, 'budget_exceeded');
    end(claim, 'commit');
    const last = use(costs('1'));
    assert.equal(last.refusal, undefined);
    end(last.claim, 'commit');
    assert.deepEqual([rows.states.get('o')?.spent, rows.states.get('o')?.pending], [MAX_UNITS, '0']);
  });

  const monthly = (start: number): readonly OpenMandateUse[] => [useOf('o', { periodStart: start })];
  const MONTH = AT - 5 * DAY_S;
  const NEXT = AT + 26 * DAY_S;

  it('is used once in a period, pending or committed, and again in the next', () => {
    const { use, end } = register();
    const first = use(monthly(MONTH));
    assert.equal(use(monthly(MONTH), DAY_S).refusal, 'recurrence_too_soon');
    end(first.claim, 'commit');
    assert.equal(use(monthly(MONTH), DAY_S).refusal, 'recurrence_too_soon');
    assert.equal(use(monthly(NEXT), 27 * DAY_S).refusal, undefined);
  });

  it('is used at the very second in which a period begins, once', () => {
    const { use } = register();
    assert.equal(use(monthly(AT)).refusal, undefined);
    assert.equal(use(monthly(AT), 1).refusal, 'recurrence_too_soon');
    assert.equal(use(monthly(AT + 2), 2).refusal, undefined);
  });

  it('has its month back also when it was used in the month before, committed or not', () => {
    for (const before of ['commit', undefined] as const) {
      const { use, end } = register();
      const first = use(monthly(MONTH));
      if (before !== undefined) end(first.claim, before);
      end(use(monthly(NEXT), 27 * DAY_S).claim, 'release');
      assert.equal(use(monthly(NEXT), 28 * DAY_S).refusal, undefined);
    }
  });

  it('that was never used is too soon for no period, not even one that began with time 0', () => {
    const { use } = register();
    assert.equal(use(monthly(0)).refusal, undefined);
    assert.equal(use(monthly(0), 1).refusal, 'recurrence_too_soon');
  });

  it('keeps the use of this period when that of the last one ends late, either way', () => {
    for (const how of ['commit', 'release'] as const) {
      const { use, end } = register();
      const late = use(monthly(MONTH));
      assert.equal(use(monthly(NEXT), 27 * DAY_S).refusal, undefined);
      end(late.claim, how);
      assert.equal(use(monthly(NEXT), 28 * DAY_S).refusal, 'recurrence_too_soon');
    }
  });

  it('shares one allowance with the other mandate of its chain', () => {
    const { use } = register();
    const both = (checkout: string) => [
      useOf(checkout, { maxOccurrences: 5 }),
      useOf('payment', { maxOccurrences: 1 }),
    ];
    assert.equal(use(both('one')).refusal, undefined);
    assert.equal(use(both('two')).refusal, 'recurrence_exceeded');
    assert.equal(use([useOf('one')]).refusal, 'open_mandate_spent');
  });

  it('is remembered until the latest end of its claims', () => {
    const { rows } = register();
    const until = (seconds: number) => claimOf(undefined, { open: [useOf('o', {}, AT + seconds)] });
    reserveUses(rows, until(900), NOW);
    reserveUses(rows, until(300), NOW);
    assert.equal(rows.states.get('o')?.ends, NOW + 900_000);
    assert.equal(reserveUses(rows, claimOf(undefined, { open: [useOf('o')] }), NOW + 899_999), 'open_mandate_spent');
    assert.equal(reserveUses(rows, claimOf(undefined, { open: [useOf('o')] }), NOW + 900_000), undefined);
  });

  it('that ended takes no late end of a use', () => {
    const { rows } = register();
    const claim = claimOf(undefined, { open: [useOf('o', {}, AT + 300)] });
    reserveUses(rows, claim, NOW);
    const before = rows.states.get('o');
    finishUses(rows, claim, 'commit', NOW + 300_000);
    assert.deepEqual(rows.states.get('o'), before);
  });
});

describe('whatever is asked of an open mandate, in any order', () => {
  interface Step {
    readonly what: 'use' | 'commit' | 'release';
    readonly units: number;
    readonly which: number;
  }
  const steps = fc.array(
    fc.record<Step>({
      what: fc.constantFrom('use', 'use', 'use', 'commit', 'release'),
      units: fc.nat(40),
      which: fc.nat(20),
    }),
    { minLength: 5, maxLength: 40 },
  );
  const BUDGET = 100;
  const OCCURRENCES = 6;

  it('what is spent and pending is what was accepted and not released, and the first use beyond a limit is refused', () => {
    let refused = 0;
    fc.assert(
      fc.property(steps, (drawn) => {
        const { rows, use, end } = register();
        const pending: { units: number; claim: MandateClaim }[] = [];
        let spent = 0;
        let uses = 0;
        for (const { what, units, which } of drawn) {
          const limits: Partial<Recurrence> = { budgetUnits: `${BUDGET}`, maxOccurrences: OCCURRENCES };
          if (what === 'use') {
            const { claim, refusal } = use([useOf('o', { ...limits, units: `${units}` })]);
            const taken = uses + pending.length;
            const left = BUDGET - spent - pending.reduce((sum, one) => sum + one.units, 0);
            const expected =
              taken >= OCCURRENCES ? 'recurrence_exceeded' : units > left ? 'budget_exceeded' : undefined;
            assert.equal(refusal, expected);
            if (refusal === undefined) pending.push({ units, claim });
            else refused += 1;
          } else if (pending.length > 0) {
            const [ended] = pending.splice(which % pending.length, 1);
            if (ended === undefined) continue;
            end(ended.claim, what);
            if (what === 'commit') [spent, uses] = [spent + ended.units, uses + 1];
          }
          const held = pending.reduce((sum, one) => sum + one.units, 0);
          const state = rows.states.get('o');
          const { spent: s = '0', pending: p = '0', uses: u = 0, puses = 0 } = state ?? {};
          assert.deepEqual([s, p, u, puses], [`${spent}`, `${held}`, uses, pending.length]);
          assert.ok(spent + held <= BUDGET && uses + pending.length <= OCCURRENCES);
        }
      }),
      { numRuns: 500 },
    );
    assert.ok(refused > 100, 'hardly ever refused: the limits prove nothing');
  });
});

const BORN = NOW - 10_000;
const first = () => mapRows({ born: BORN, openFrom: 0 });
const afterLoss = () => mapRows({ born: BORN, openFrom: BORN });
const aged = (age: number | undefined, openAge?: number | undefined) =>
  claimOf(undefined, { age, open: [{ ...useOf('o', {}), age: openAge }] });

describe('a register at its start', () => {
  it('refuses checkouts from before, to the millisecond, and leaves everything as it was', () => {
    const rows = first();
    assert.equal(reserveUses(rows, claimOf('a', { age: 10.001 }), NOW), 'replayed');
    assert.equal(reserveUses(rows, claimOf('a', { age: 10.0001 }), NOW), 'replayed');
    assert.deepEqual([rows.onceIds.size, rows.states.size], [0, 0]);
    assert.equal(reserveUses(rows, claimOf('a', { age: 10 }), NOW), undefined);
    assert.equal(reserveUses(rows, claimOf('b', { age: -5 }), NOW), undefined);
  });

  it('does not use the clock that mandates are checked with', () => {
    const rows = first();
    assert.equal(reserveUses(rows, claimOf('a', { at: 5, age: 11 }), NOW), 'replayed');
    assert.equal(reserveUses(rows, claimOf('a', { at: 5, age: 9 }), NOW), undefined);
  });

  it('refuses a checkout of unknown age', () => {
    assert.equal(reserveUses(first(), claimOf('a', { age: undefined }), NOW), 'replayed');
    assert.equal(reserveUses(mapRows(), claimOf('a', { age: undefined }), NOW), undefined);
  });

  it('for the first time, accepts open mandates that are older', () => {
    for (const age of [3_600, undefined]) assert.equal(reserveUses(first(), aged(1, age), NOW), undefined);
  });

  it('after a loss, refuses open mandates from before for as long as they live, and accepts later ones', () => {
    const rows = afterLoss();
    for (const age of [10.001, 3_600, undefined])
      assert.equal(reserveUses(rows, aged(1, age), NOW), 'open_mandate_spent', `${age}`);
    const days = 30 * 86_400;
    assert.equal(reserveUses(rows, aged(1, days + 11), NOW + days * 1_000), 'open_mandate_spent');
    assert.equal(rows.states.size, 0);
    assert.equal(reserveUses(rows, aged(1, 10), NOW), undefined);
  });

  it('after a loss, refuses a chain one of whose open mandates is older', () => {
    const open = [
      { ...useOf('new', {}), age: 1 },
      { ...useOf('old', {}), age: 11 },
    ];
    assert.equal(reserveUses(afterLoss(), claimOf(undefined, { open }), NOW), 'open_mandate_spent');
  });
});

describe('a register that is found empty, epoch and all', () => {
  it('accepts nothing made before, and remembers uses from then on', () => {
    const rows = mapRows(null);
    const used = aged(0, 0);
    assert.equal(reserveUses(rows, used, NOW), 'replayed');
    assert.deepEqual(rows.epoch(), { born: NOW, openFrom: NOW });
    assert.deepEqual([rows.onceIds.size, rows.states.size], [0, 0]);
    assert.equal(reserveUses(rows, { ...used, age: 1.001 }, NOW + 1_000), 'replayed');
    assert.equal(reserveUses(rows, aged(1, 1.001), NOW + 1_000), 'open_mandate_spent');
    assert.equal(reserveUses(rows, aged(1, 1), NOW + 1_000), undefined);
  });

  it('ends uses that it forgot without a trace', () => {
    const rows = mapRows(null);
    for (const how of ['commit', 'release'] as const)
      finishUses(rows, claimOf(undefined, { at: AT, open: [useOf('o')] }), how, NOW);
    assert.deepEqual([rows.onceIds.size, rows.states.size, rows.epoch()], [0, 0, undefined]);
  });
});
