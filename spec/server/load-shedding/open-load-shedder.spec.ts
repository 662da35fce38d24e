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

describe('a load shedder, for an adapter that answers itself', () => {
  it('refuses beyond the cap of that adapter, and beyond that of all calls', () => {
    const opened = openLoadShedder({ ...parts, maxInFlight: 1 });
    try {
      const cap = createSlots(1);
      const shedding = opened.sheddingFor(cap);
      assert.equal(shedding(), undefined);
      const leaveAdapter = cap.take()();
      assert.equal(shedding(), 'in_flight');
      leaveAdapter();
      const leave = opened.slots.take()();
      assert.equal(shedding(), 'in_flight');
      leave();
      assert.equal(shedding(), undefined);
      assert.deepEqual(opened.shed(), { overload: 0, in_flight: 2 }, 'only refusals are counted');
    } finally {
      opened.close();
    }
  });

  it('refuses while the event loop is too slow for what is in flight', async () => {
    const { promise: judged, resolve } = Promise.withResolvers<void>();
    let looks = 0;
    const loop = () => {
      looks += 1;
      if (looks > 1) resolve();
      return { turnMs: 50, busy: 1 };
    };
    const opened = openLoadShedder({ ...parts, loop });
    try {
      await judged;
      for (let taken = 0; taken < FIRST_LIMIT; taken += 1) opened.slots.take()();
      const shedding = opened.sheddingFor(createSlots(1));
      assert.equal(shedding(), 'overload');
      assert.equal(opened.shed().overload, 1);
    } finally {
      opened.close();
    }
  });
});
