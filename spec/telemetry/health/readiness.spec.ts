import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type CheckState,
  type Observation,
  observe,
  renderCheck,
  UNSEEN,
} from '../../../src/telemetry/health/monitor.ts';

/** The looks, and the status after each. */
interface Course {
  readonly rule: string;
  readonly looks: readonly (readonly [atMs: number, found: Observation, status: CheckState['status']])[];
}

const COURSES: readonly Course[] = [
  { rule: 'what was never seen working is failing', looks: [[0, 'unreachable', 'fail']] },
  { rule: 'one good look passes', looks: [[0, 'ok', 'pass']] },
  {
    rule: 'the first failure warns, the third in a row fails',
    looks: [
      [0, 'ok', 'pass'],
      [2_000, 'unreachable', 'warn'],
      [4_000, 'unreachable', 'warn'],
      [6_000, 'unreachable', 'fail'],
    ],
  },
  {
    rule: 'a good look in between starts the count again',
    looks: [
      [0, 'ok', 'pass'],
      [2_000, 'unreachable', 'warn'],
      [4_000, 'ok', 'pass'],
      [6_000, 'unreachable', 'warn'],
      [8_000, 'unreachable', 'warn'],
    ],
  },
  {
    rule: 'ten seconds without a good look fail whatever the count',
    looks: [
      [0, 'ok', 'pass'],
      [9_999, 'unreachable', 'warn'],
      [10_000, 'unreachable', 'fail'],
    ],
  },
  {
    rule: 'a store that cannot write fails at once',
    looks: [
      [0, 'ok', 'pass'],
      [2_000, 'unwritable', 'fail'],
      [4_000, 'ok', 'pass'],
    ],
  },
  {
    rule: 'degraded warns and never fails',
    looks: [
      [0, 'degraded', 'warn'],
      [2_000, 'degraded', 'warn'],
      [4_000, 'degraded', 'warn'],
      [6_000, 'degraded', 'warn'],
      [60_000, 'ok', 'pass'],
    ],
  },
];

describe('readiness of a component', () => {
  for (const { rule, looks } of COURSES)
    it(rule, () => {
      let state = UNSEEN;
      for (const [atMs, found, status] of looks) {
        state = observe(state, found, atMs);
        assert.equal(state.status, status, `${found} at ${atMs} ms`);
      }
    });

  it('details come from the closed vocabulary, and a pass has none', () => {
    const after = (found: Observation): CheckState => observe(observe(UNSEEN, 'ok', 0), found, 1);
    assert.deepEqual(renderCheck('redis', 'store', after('ok')), { name: 'redis', status: 'pass' });
    for (const [name, kind, found, status, detail] of [
      ['redis', 'store', 'unreachable', 'warn', 'store-unreachable'],
      ['redis', 'store', 'degraded', 'warn', 'store-degraded'],
      ['redis', 'store', 'unwritable', 'fail', 'store-unwritable'],
      ['x402', 'payment-provider', 'unreachable', 'warn', 'payment-provider-unreachable'],
    ] as const)
      assert.deepEqual(renderCheck(name, kind, after(found)), { name, status, detail });
  });
});
