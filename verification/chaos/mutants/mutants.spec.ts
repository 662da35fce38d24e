import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EVERY } from '../every.ts';
import { type Ground, startGround } from '../steps/ground.ts';
import { HUNTS } from './hunts.ts';
import { onStage } from './stage.ts';

/** Hunts at the same time: some of them wait for a lease to end. */
const AT_ONCE = 6;
/** The true build passes each hunt the first time; a wrong one must be noticed in one of these. */
const MOST_HUNTS = 4;

describe('a check for wrong designs', { concurrency: AT_ONCE }, () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const { mistake, mutant, notices, run } of HUNTS) {
    // `notices` names the mistake, so a hunt that fails for another reason shows even without this
    // row.
    if (EVERY) it(`passes the true build, which is none that ${mistake}`, () => onStage(ground, {}, run));

    it(`catches a build that ${mistake}`, async () => {
      // Some mistakes show only when two processes act at the same moment: such a hunt is repeated.
      for (let hunt = 1; hunt <= MOST_HUNTS; hunt += 1) {
        const noticed = await onStage(ground, mutant, run).then(
          () => undefined,
          (thrown: Error) => thrown,
        );
        if (noticed === undefined) continue;
        assert.match(noticed.message, notices);
        return;
      }
      assert.fail(`nothing was noticed in ${MOST_HUNTS} hunts`);
    });
  }
});
