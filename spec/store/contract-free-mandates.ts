import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import type { MandateClaim } from '../../src/mandates/register/register.ts';
import { claimOf } from '../mandates/register/register-map.ts';
import { holder, recordIn } from '../payments/ledger/samples.ts';
import { BUDGET, budget, CALLERS, refused, reserveWith } from './contract-mandates.ts';
import { type OpenStore, opened } from './opened.ts';

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

    it(`let ${BUDGET} of ${CALLERS} have a budget for ${BUDGET}, and one of a hundred a mandate`, async () => {
      const id = randomUUID();
      const answers = await Promise.all(
        Array.from({ length: CALLERS }, () => use(claimOf(undefined, { open: budget(id) }))),
      );
      assert.equal(answers.filter(({ kind }) => kind === 'reserved').length, BUDGET);
      const claim = claimOf();
      const copies = await Promise.all(Array.from({ length: 100 }, () => use(claim)));
      assert.equal(copies.filter(({ kind }) => kind === 'reserved').length, 1);
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
