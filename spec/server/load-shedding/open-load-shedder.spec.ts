import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LEAST_IN_FLIGHT } from '../../../src/server/load-shedding/in-flight-limit.ts';
import { openLoadShedder } from '../../../src/server/load-shedding/open-load-shedder.ts';
import { ProofStanding } from '../../../src/server/load-shedding/proof-standing.ts';
import { createSlots } from '../../../src/server/load-shedding/slots.ts';

const parts = {
  maxInFlight: 512,
  mounts: new Map<string, string>(),
  lifecycle: { draining: () => false, begin: () => () => undefined },
  carriesProof: () => false,
  proofs: new ProofStanding(() => '-'),
  onShed: () => undefined,
  onLost: () => undefined,
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

  it('refuses a few slots beyond the limit that other calls wait for', async () => {
    const { promise: judged, resolve } = Promise.withResolvers<void>();
    let looks = 0;
    const loop = () => {
      looks += 1;
      // Long enough for the loop to count as busy.
      if (looks > 32) resolve();
      return { turnMs: 50, busy: 1 };
    };
    const opened = openLoadShedder({ ...parts, loop });
    try {
      const shedding = opened.sheddingFor(createSlots(1));
      await judged;
      for (let taken = 0; taken < 2 * LEAST_IN_FLIGHT - 1; taken += 1) opened.slots.take()();
      assert.equal(shedding(), undefined);
      opened.slots.take()();
      assert.equal(shedding(), 'overload');
      assert.equal(opened.shed().overload, 1);
    } finally {
      opened.close();
    }
  });

  it('frees and tells the slots of both that outlive the longest call', (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const now = t.mock.method(performance, 'now');
    const told: number[] = [];
    const opened = openLoadShedder({ ...parts, onLost: (slots) => void told.push(slots) });
    try {
      const cap = createSlots(1);
      opened.sheddingFor(cap);
      for (const slots of [opened.slots, cap]) slots.take()();
      for (const [minutes, lost] of [
        [3, 0],
        [5, 2],
      ] as const) {
        const at = minutes * 60_000 + performance.now();
        now.mock.mockImplementation(() => at);
        t.mock.timers.tick(1_000);
        assert.equal(opened.lost(), lost);
      }
      assert.deepEqual([told, opened.slots.inFlight(), cap.free()], [[2], 0, true]);
    } finally {
      opened.close();
    }
  });
});
