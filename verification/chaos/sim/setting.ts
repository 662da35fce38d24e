/** The constants of one simulated run. */

import type { RailKind } from './rail.ts';

/** The constants of a run. */
export interface Setting {
  readonly method: 'GET' | 'POST';
  readonly rail: RailKind;
  readonly honoursKeys: boolean;
  readonly payToExclusive: boolean;
  readonly backendTimeoutMs: number;
  /** Whether the money moves before the backend is called, or after it answered. */
  readonly settle: 'before' | 'after';
  /** Whether the resource requires a mandate. */
  readonly mandated: boolean;
}
