/** From and to, milliseconds. */
export type Span = readonly [from: number, to: number];

/** The plan of a run. Rates are probabilities, 0 to 1. */
export interface Plan {
  readonly seed: number;
  /** Two gateways over one Redis, or one over a file of SQLite, which has none of Redis' faults. */
  readonly store: 'redis' | 'sqlite';
  /** Each with a chain and a facilitator of its own; of several, one is not offered for a while. */
  readonly networks: 1 | 2;
  /** Logical paid calls, at least; more when the kills are not done yet. */
  readonly calls: number;
  /** Buyers at the same time. */
  readonly buyers: number;
  /** The run goes on until all of them have happened. */
  readonly least: {
    readonly gatewayKills: number;
    readonly redisKills: number;
    readonly powerCuts: number;
    /** Of a gateway, and of Redis: stopped as a whole and woken up again (SIGSTOP, SIGCONT). */
    readonly gatewayPauses: number;
    readonly redisPauses: number;
    /** Of the wall clock of a gateway. */
    readonly clockJumps: number;
  };
  /** How long a pause lasts. */
  readonly pauseMs: Span;
  readonly gatewayKillEveryMs: Span;
  readonly gatewayPauseEveryMs: Span;
  readonly clockJumpEveryMs: Span;
  readonly redisKillEveryMs: Span;
  /** Of each facilitator, where there are two: cut off or stopped, and for how long. */
  readonly facilitatorAwayEveryMs: Span;
  readonly facilitatorAwayMs: Span;
  /**
   * Of `/settle`, of `/verify`, of the backend, of the chain node; of the chunks on the connections
   * to Redis and to the others.
   */
  readonly faults: {
    readonly settle: number;
    readonly verify: number;
    readonly merchant: number;
    readonly rpc: number;
    readonly redisLine: number;
    readonly lines: number;
  };
  /** Of the requests with a proof: cut by the buyer, which sends them again at once. */
  readonly aborts: number;
  /** Of those: buyers that come back only after the last fault. */
  readonly leavers: number;
  /** Of the calls: with an idempotency key. */
  readonly keys: number;
  /**
   * Of the calls without one: by buyers that echo the token of their challenge. The others have no
   * secret.
   */
  readonly tokens: number;
  /** Of the calls: by each kind of adversary. */
  readonly adversaries: number;
  /** The run ends after this time, whatever is missing, milliseconds. */
  readonly disturbAtMostMs: number;
  /**
   * After which a record that is still open, or a buyer without an end, is a violation,
   * milliseconds.
   */
  readonly settleDownMs: number;
}

const FAULTS = {
  store: 'redis',
  networks: 1,
  facilitatorAwayEveryMs: [4_000, 20_000],
  facilitatorAwayMs: [1_000, 10_000],
  faults: { settle: 0.3, verify: 0.05, merchant: 0.3, rpc: 0.02, redisLine: 0.002, lines: 0.01 },
  aborts: 0.08,
  leavers: 0.4,
  keys: 0.5,
  tokens: 0.5,
  adversaries: 0.02,
} as const satisfies Partial<Plan>;

/** The faults and goals of the short run, which is part of every test run. */
export function shortPlan(seed: number): Plan {
  return {
    ...FAULTS,
    gatewayKillEveryMs: [800, 2_000],
    gatewayPauseEveryMs: [8_000, 16_000],
    clockJumpEveryMs: [4_000, 9_000],
    pauseMs: [3_000, 6_000],
    redisKillEveryMs: [3_000, 6_000],
    seed,
    calls: 180,
    buyers: 14,
    least: { gatewayKills: 7, redisKills: 3, powerCuts: 1, gatewayPauses: 1, redisPauses: 1, clockJumps: 2 },
    disturbAtMostMs: 150_000,
    settleDownMs: 15_000,
  };
}

/** The faults and goals of the long run, which is started on its own. */
export function longPlan(seed: number): Plan {
  return {
    ...FAULTS,
    gatewayKillEveryMs: [1_000, 4_000],
    gatewayPauseEveryMs: [10_000, 30_000],
    clockJumpEveryMs: [4_000, 15_000],
    pauseMs: [3_000, 20_000],
    redisKillEveryMs: [3_000, 9_000],
    seed,
    calls: 6_000,
    buyers: 24,
    least: { gatewayKills: 35, redisKills: 14, powerCuts: 14, gatewayPauses: 10, redisPauses: 8, clockJumps: 30 },
    disturbAtMostMs: 3_600_000,
    settleDownMs: 60_000,
  };
}

/** The same over SQLite. */
export function overSqlite({ least, ...plan }: Plan): Plan {
  return { ...plan, store: 'sqlite', least: { ...least, redisKills: 0, powerCuts: 0, redisPauses: 0 } };
}

/**
 * `CHAOS=all make test SPEC=verification/chaos`: every kind of call at every step, on each store,
 * with each rail. A test run has one death for each different set of writes and calls.
 */
export const EVERY = process.env['CHAOS'] === 'all';

/** The rows of a run: all of them, or those that are not marked. */
export function rowsOf<Row extends { readonly rare?: true }>(rows: readonly Row[]): readonly Row[] {
  return rows.filter(({ rare }) => EVERY || rare === undefined);
}
