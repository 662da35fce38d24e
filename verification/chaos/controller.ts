/** Kills, pauses and cuts the programs of a run by its plan. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Post } from './fleet.ts';
import type { Plan, Span } from './plan.ts';
import type { Power } from './power.ts';
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

async function every(span: Span, seed: Seed, over: AbortSignal, act: (seed: Seed) => Promise<void>): Promise<void> {
  for (;;) {
    await delay(seed.between(...span), undefined, { signal: over }).catch(() => undefined);
    if (over.aborted) return;
    await act(seed);
  }
}
