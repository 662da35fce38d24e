import { describe, it } from 'node:test';
import { RULES } from './lane-rules.ts';
import { openLaneStage } from './lane-stage.ts';

describe('the settlement lane', () => {
  for (const { title, play } of RULES) it(title, async () => play(await openLaneStage()));
});
