import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createShedding, type ShedReason } from '../../../src/server/load-shedding/load-shedder.ts';

const LIMIT = 20;

/** What happens when a call comes, and what was told of it. */
function shed(scene: { readonly overloaded: boolean; readonly inFlight: number; readonly free?: boolean }): {
  readonly reason: ShedReason | undefined;
  readonly counted: readonly boolean[];
  readonly seen: number;
} {
  const counted: boolean[] = [];
  let seen = 0;
  const shedding = createShedding({
    places: { free: () => scene.free ?? true, inFlight: () => scene.inFlight },
    pressure: { overloaded: scene.overloaded, limit: LIMIT, came: (refused) => void counted.push(refused) },
    turns: {
      came: () => {
        seen += 1;
      },
    },
  });
  return { reason: shedding(), counted, seen };
}

describe('a call', () => {
  it('comes in while the process is not overloaded, whatever is in flight', () => {
    assert.deepEqual(shed({ overloaded: false, inFlight: LIMIT + 1 }), { reason: undefined, counted: [], seen: 1 });
  });

  it('comes in below the limit of an overload', () => {
    assert.deepEqual(shed({ overloaded: true, inFlight: LIMIT - 1 }), { reason: undefined, counted: [false], seen: 1 });
  });

  it('is refused at the limit, and counted', () => {
    assert.deepEqual(shed({ overloaded: true, inFlight: LIMIT }), { reason: 'overload', counted: [true], seen: 1 });
  });

  it('is refused for want of a place, overloaded or not', () => {
    assert.equal(shed({ overloaded: false, inFlight: 0, free: false }).reason, 'in_flight');
    assert.equal(shed({ overloaded: true, inFlight: 0, free: false }).reason, 'in_flight');
  });

  it('is refused for the overload where both hold: that is what the caller can do something about', () => {
    assert.equal(shed({ overloaded: true, inFlight: LIMIT, free: false }).reason, 'overload');
  });
});
