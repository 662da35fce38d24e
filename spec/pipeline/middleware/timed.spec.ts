import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Stage } from '../../../src/pipeline/call.ts';
import { type StepName, timed } from '../../../src/pipeline/middleware/timed.ts';
import { callAt, passed } from '../calls.ts';

const CASES: readonly (readonly [StepName, Stage, entered: boolean])[] = [
  ['verify', 'prepared', true],
  ['verify', 'funded', false],
  ['settle', 'proven', true],
  ['settle', 'funded', false],
  ['forward', 'funded', true],
  ['forward', 'answered', false],
  // A free call is checked for its mandate, and each answer is delivered.
  ['authorize', 'funded', true],
  ['conclude', 'answered', true],
];

describe('a timed step', () => {
  for (const [name, stage, entered] of CASES)
    it(`${name} is ${entered ? '' : 'not '}entered by a call that is ${stage}`, async () => {
      const watched: StepName[] = [];
      const step = timed((step) => () => void watched.push(step));
      const { went } = await passed(
        step(name, (_req, _res, next) => next()),
        callAt(stage).res,
      );
      assert.deepEqual([went, watched], [true, entered ? [name] : []]);
    });
});
