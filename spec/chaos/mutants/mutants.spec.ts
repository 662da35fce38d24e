import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Ground, startGround } from '../steps/ground.ts';
import { HUNTS } from './hunts.ts';
import { onStage } from './stage.ts';

/** Hunts at the same time: some of them wait for a lease to end. */
const AT_ONCE = 6;

describe('a hunt for wrong designs', { concurrency: AT_ONCE }, () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const { mistake, mutant, notices, run } of HUNTS) {
    it(`passes the true build, which is none that ${mistake}`, () => onStage(ground, {}, run));

    it(`catches a build that ${mistake}`, () =>
      assert.rejects(onStage(ground, mutant, run), (thrown: Error) => {
        assert.match(thrown.message, notices);
        return true;
      }));
  }
});
