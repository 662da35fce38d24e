import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  CALLS_A_TURN,
  createShedding,
  HARMLESS_IN_FLIGHT,
  HARMLESS_PAID_IN_FLIGHT,
  PAID_TURN_BUDGET_MS,
  type ShedReason,
  TURN_BUDGET_MS,
} from '../../src/overload/shedding.ts';

interface Scene {
  readonly overloaded?: boolean;
  readonly free?: boolean;
  readonly inFlight?: number;
  /** How far into its turn the call comes, milliseconds. */
  readonly elapsed?: number;
  readonly mayPay?: boolean;
  /** Calls that the same turn let in before. */
  readonly before?: number;
}

const BUSY = { overloaded: true, inFlight: HARMLESS_IN_FLIGHT, before: CALLS_A_TURN };

/** What becomes of a call. */
function shed(scene: Scene): ShedReason | undefined {
  const { overloaded = false, free = true, inFlight = 0, elapsed = 0, mayPay = false, before = 0 } = scene;
  let now = 0;
  const shedding = createShedding({
    places: { free: () => free, inFlight: () => inFlight },
    pressure: { overloaded, came: () => undefined },
    turn: { elapsed: () => now, number: 1 },
  });
  for (let call = 0; call < before; call += 1) assert.equal(shedding(false), undefined);
  now = elapsed;
  return shedding(mayPay);
}

describe('a call at the door', () => {
  const CASES: readonly (readonly [string, Scene, ShedReason | undefined])[] = [
    [
      'comes in when there is no overload, however long the turn',
      { ...BUSY, overloaded: false, elapsed: 999 },
      undefined,
    ],
    ['is refused when all places are taken', { free: false }, 'in_flight'],
    ['is refused for want of a place also when it pays', { free: false, mayPay: true }, 'in_flight'],
    ['comes in early in a turn', { ...BUSY, elapsed: TURN_BUDGET_MS }, undefined],
    ['is refused late in a turn', { ...BUSY, elapsed: TURN_BUDGET_MS + 0.1 }, 'overload'],
    [
      'comes in late when it may pay',
      { ...BUSY, inFlight: HARMLESS_PAID_IN_FLIGHT, elapsed: PAID_TURN_BUDGET_MS, mayPay: true },
      undefined,
    ],
    [
      'comes in very late when it may pay and not too many do',
      { ...BUSY, inFlight: HARMLESS_PAID_IN_FLIGHT - 1, elapsed: 999, mayPay: true },
      undefined,
    ],
    [
      'is refused very late although it may pay',
      { ...BUSY, inFlight: HARMLESS_PAID_IN_FLIGHT, elapsed: PAID_TURN_BUDGET_MS + 0.1, mayPay: true },
      'overload',
    ],
    ['comes in late when few are in flight', { ...BUSY, elapsed: 999, inFlight: HARMLESS_IN_FLIGHT - 1 }, undefined],
    ['comes in late when its turn let in few', { ...BUSY, elapsed: 999, before: CALLS_A_TURN - 1 }, undefined],
  ];
  for (const [title, scene, outcome] of CASES) it(title, () => assert.equal(shed(scene), outcome));

  it('is told to the pressure, let in or not', () => {
    const came: boolean[] = [];
    let now = 0;
    const shedding = createShedding({
      places: { free: () => true, inFlight: () => HARMLESS_IN_FLIGHT },
      pressure: { overloaded: true, came: (refused) => void came.push(refused) },
      turn: { elapsed: () => now, number: 1 },
    });
    for (let call = 0; call < CALLS_A_TURN; call += 1) shedding(false);
    now = TURN_BUDGET_MS + 1;
    shedding(false);
    assert.deepEqual(came, [...Array.from({ length: CALLS_A_TURN }, () => false), true]);
  });

  it('finds a new allowance in the next turn', () => {
    const turn = { elapsed: () => 999, number: 1 };
    const shedding = createShedding({
      places: { free: () => true, inFlight: () => HARMLESS_IN_FLIGHT },
      pressure: { overloaded: true, came: () => undefined },
      turn,
    });
    for (let call = 0; call < CALLS_A_TURN; call += 1) assert.equal(shedding(false), undefined);
    assert.equal(shedding(false), 'overload');
    turn.number = 2;
    assert.equal(shedding(false), undefined);
  });
});
