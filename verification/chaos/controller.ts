/** Kills, pauses and cuts the programs of a run by its plan. */

import { readdirSync, statSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startRedis, type TestRedis } from '../../spec/support/redis.ts';
import type { Post } from './fleet.ts';
import type { Plan, Span } from './plan.ts';
import { type Seed, seedOf } from './seed.ts';

/** What was done to which program, milliseconds since the start of the run. */
export interface Action {
  readonly atMs: number;
  readonly what: string;
}

/** Kills and pauses until `stop`. */
export interface Controller {
  readonly actions: readonly Action[];
  readonly kills: Readonly<Record<Kind, number>>;
  /** Whether all kills and pauses of the plan have happened. */
  done(): boolean;
  /** Time of the last kill, pause or restart, Unix milliseconds. */
  readonly lastAt: number;
  /** Ends kills and pauses; resolves when everything runs again. */
  stop(): Promise<void>;
}

/** The kinds of faults, as the report counts them. */
type Kind = 'gateway' | 'redis' | 'powerCut' | 'gatewayPause' | 'redisPause' | 'clockJump';

/** How often the last running gateway is killed too; always would leave no gateway to buy from. */
const LAST_ONE_TOO = 0.25;
/** How long Redis stays down, milliseconds. */
const REDIS_AWAY_MS: Span = [20, 700];

/** Starts the kills and pauses. `power`: of Redis, where the run has one. */
export function startController(plan: Plan, posts: readonly Post[], power: Power | undefined): Controller {
  const began = Date.now();
  const actions: Action[] = [];
  const kills = { gateway: 0, redis: 0, powerCut: 0, gatewayPause: 0, redisPause: 0, clockJump: 0 };
  const over = new AbortController();
  const restarts = new Set<Promise<void>>();
  let lastAt = began;
  const note = (what: string): void => {
    lastAt = Date.now();
    actions.push({ atMs: lastAt - began, what });
  };

  const killGateway = async (seed: Seed): Promise<void> => {
    const standing = posts.filter(({ up }) => up);
    const takesLast = seed.chance(LAST_ONE_TOO) || posts.length === 1;
    if (standing.length === 0 || (standing.length === 1 && !takesLast)) return;
    const post = seed.pick(standing);
    kills.gateway += 1;
    note(`kill ${post.name}`);
    await post.kill();
    const restart = post.start().then(() => note(`up ${post.name}`));
    restarts.add(restart);
    // A failed restart stays in the set, so that `stop` throws its error.
    restart.then(
      () => restarts.delete(restart),
      () => undefined,
    );
  };
  const killRedis =
    (power: Power) =>
    async (seed: Seed): Promise<void> => {
      const { least } = plan;
      // The kind that is furthest behind its share of the plan.
      const behind = leastBy([
        ['redis', kills.redis / least.redisKills],
        ['powerCut', kills.powerCut / least.powerCuts],
        ['redisPause', kills.redisPause / least.redisPauses],
      ]);
      if (behind === 'redisPause') {
        kills.redisPause += 1;
        note('pause redis');
        power.pause();
        await delay(seed.between(...plan.pauseMs));
        power.wake();
        note('wake redis');
        return;
      }
      if (behind === 'redis') {
        kills.redis += 1;
        note('kill redis');
        await power.kill();
      } else {
        kills.powerCut += 1;
        note(`power cut, ${await power.cut()} bytes lost`);
      }
      await delay(seed.between(...REDIS_AWAY_MS));
      await power.restart();
      note('up redis');
    };
  const pauseGateway = async (seed: Seed): Promise<void> => {
    const post = seed.pick(posts);
    kills.gatewayPause += 1;
    note(`pause ${post.name}`);
    post.pause();
    await delay(seed.between(...plan.pauseMs));
    // A new process may run there by now: it was never stopped.
    post.wake();
    note(`wake ${post.name}`);
  };
  const jumpClock = async (seed: Seed): Promise<void> => {
    const post = seed.pick(posts);
    kills.clockJump += 1;
    note(`clock of ${post.name} jumps`);
    post.jump();
  };
  const loops = Promise.all([
    every(plan.gatewayKillEveryMs, seedOf(`${plan.seed}/gateway-kills`), over.signal, killGateway),
    every(plan.gatewayPauseEveryMs, seedOf(`${plan.seed}/gateway-pauses`), over.signal, pauseGateway),
    every(plan.clockJumpEveryMs, seedOf(`${plan.seed}/clock-jumps`), over.signal, jumpClock),
    power && every(plan.redisKillEveryMs, seedOf(`${plan.seed}/redis-kills`), over.signal, killRedis(power)),
  ]);
  // `stop` awaits it, and throws the error.
  loops.catch(() => undefined);

  return {
    actions,
    kills,
    done: () =>
      kills.gateway >= plan.least.gatewayKills &&
      kills.redis >= plan.least.redisKills &&
      kills.powerCut >= plan.least.powerCuts &&
      kills.gatewayPause >= plan.least.gatewayPauses &&
      kills.redisPause >= plan.least.redisPauses &&
      kills.clockJump >= plan.least.clockJumps,
    get lastAt() {
      return lastAt;
    },
    async stop() {
      over.abort();
      await loops;
      await Promise.all(restarts);
    },
  };
}

function leastBy<Name>(shares: readonly (readonly [Name, number])[]): Name | undefined {
  return shares.toSorted(([, one], [, other]) => one - other)[0]?.[0];
}

/** Acts after each span until it is over, once at a time. */
export async function every(
  span: Span,
  seed: Seed,
  over: AbortSignal,
  act: (seed: Seed) => Promise<void>,
): Promise<void> {
  for (;;) {
    await delay(seed.between(...span), undefined, { signal: over }).catch(() => undefined);
    if (over.aborted) return;
    await act(seed);
  }
}

/** A power cut: what was written after `sampledAt` is gone. Unix milliseconds. */
export interface PowerCut {
  readonly sampledAt: number;
  readonly killedAt: number;
  readonly lostBytes: number;
}

/** A Redis that can lose its power. */
interface Power {
  readonly redis: TestRedis;
  readonly cuts: readonly PowerCut[];
  /** kill -9: writes survive. */
  kill(): Promise<void>;
  /** kill -9; the append-only file keeps only what is at least a second old. @returns lost bytes */
  cut(): Promise<number>;
  restart(): Promise<void>;
  /** SIGSTOP until SIGCONT: the server keeps its connections and answers nothing. */
  pause(): void;
  wake(): void;
  stop(): Promise<void>;
}

/** How long a cut waits for writes that it can lose, milliseconds. */
const WAIT_FOR_WRITES_MS = 5_000;
/** Below this age a write may not be on the disk yet, with `appendfsync everysec`. */
const UNSYNCED_MS = 1_000;
const SAMPLE_EVERY_MS = 100;
const SAMPLES = 30;

interface Sample {
  readonly at: number;
  readonly sizes: ReadonlyMap<string, number>;
}

/**
 * Starts Redis with an append-only file whose growth is watched. It is never rewritten, so that
 * sizes stay comparable.
 */
export async function openPower(): Promise<Power> {
  const redis = await startRedis({ args: ['--auto-aof-rewrite-percentage', '0'] });
  const directory = join(dirname(redis.socketPath), 'appendonlydir');
  const cuts: PowerCut[] = [];
  let samples: Sample[] = [];
  const sample = (): void => {
    // The time is read first: a write during the reading counts as later.
    const at = Date.now();
    samples = [...samples.slice(1 - SAMPLES), { at, sizes: sizesOf(directory) }];
  };
  /**
   * The newest state that a power cut would leave; the state right after a start was read from the
   * disk.
   */
  const synced = (): Sample => {
    const kept = samples.findLast(({ at }) => at <= Date.now() - UNSYNCED_MS) ?? samples[0];
    if (kept === undefined) throw new Error('nothing was ever sampled');
    return kept;
  };
  sample();
  const timer = setInterval(sample, SAMPLE_EVERY_MS);

  return {
    redis,
    cuts,
    kill: () => redis.kill(),
    async cut() {
      const deadline = Date.now() + WAIT_FOR_WRITES_MS;
      while (Date.now() < deadline && sum(sizesOf(directory)) <= sum(synced().sizes)) await delay(SAMPLE_EVERY_MS);
      const kept = synced();
      await redis.kill();
      const killedAt = Date.now();
      let lostBytes = 0;
      for (const [path, size] of sizesOf(directory)) {
        const least = Math.min(size, kept.sizes.get(path) ?? size);
        lostBytes += size - least;
        truncateSync(path, least);
      }
      cuts.push({ sampledAt: kept.at, killedAt, lostBytes });
      return lostBytes;
    },
    async restart() {
      await redis.restart();
      samples = [];
      sample();
    },
    pause: () => void process.kill(redis.pid, 'SIGSTOP'),
    wake: () => void process.kill(redis.pid, 'SIGCONT'),
    async stop() {
      clearInterval(timer);
      await redis.stop();
    },
  };
}

function sum(sizes: ReadonlyMap<string, number>): number {
  return [...sizes.values()].reduce((all, size) => all + size, 0);
}

function sizesOf(directory: string): ReadonlyMap<string, number> {
  const files = readdirSync(directory).filter((name) => name.endsWith('.aof'));
  return new Map(files.map((name) => [join(directory, name), statSync(join(directory, name)).size]));
}
