import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openLoadShedder } from '../../../src/server/load-shedding/open-load-shedder.ts';
import { FIRST_LIMIT } from '../../../src/server/load-shedding/overload-detector.ts';
import { createSlots } from '../../../src/server/load-shedding/slots.ts';

const parts = {
  maxInFlight: 2 * FIRST_LIMIT,
  mounts: new Map<string, string>(),
  draining: () => false,
  onShed: () => undefined,
};

describe('a doorway, asked by a front that answers in its own words', () => {
  it('refuses beyond the cap of that front, and beyond that of all calls', () => {
    const doorway = openLoadShedder({ ...parts, maxInFlight: 1 });
    try {
      const cap = createSlots(1);
      const shedding = doorway.sheddingFor(cap);
      assert.equal(shedding(), undefined);
      const leaveFront = cap.take()();
      assert.equal(shedding(), 'in_flight');
      leaveFront();
      const leave = doorway.slots.take()();
      assert.equal(shedding(), 'in_flight');
      leave();
      assert.equal(shedding(), undefined);
      assert.deepEqual(doorway.shed(), { overload: 0, in_flight: 2 }, 'refusals are counted, and nothing else');
    } finally {
      doorway.close();
    }
  });

  it('refuses while the event loop cannot keep up with what is in flight', async () => {
    const { promise: judged, resolve } = Promise.withResolvers<void>();
    let looks = 0;
    const loop = () => {
      looks += 1;
      if (looks > 1) resolve();
      return { turnMs: 50, busy: 1 };
    };
    const doorway = openLoadShedder({ ...parts, loop });
    try {
      await judged;
      for (let taken = 0; taken < FIRST_LIMIT; taken += 1) doorway.slots.take()();
      const shedding = doorway.sheddingFor(createSlots(1));
      assert.equal(shedding(), 'overload');
      assert.equal(doorway.shed().overload, 1);
    } finally {
      doorway.close();
    }
  });
});
