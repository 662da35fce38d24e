/** The ways in which a backend goes away. */

import { setTimeout as delay } from 'node:timers/promises';
import { askHook } from '../../../spec/support/hook.ts';
import { type AwayWorld, type Manner, openAwayWorld } from './world.ts';

/** How long the backend is down each time, and up in between, milliseconds. */
const AWAY_MS = 1_500;
const THERE_MS = 1_200;
const BUYERS = 6;
/** How long an answer takes where the backend must have calls in hand, milliseconds. */
const WORK_MS = 300;
/** The backend deadline in scenarios with a silent backend, milliseconds. */
const SHORT_MS = 400;
/** How long the backend is silent, milliseconds: several periods of the breaker. */
const SILENT_MS = 6_000;

/** The results of one scenario. Numbers count calls, unless a comment states another unit. */
export interface Shown {
  readonly scenario: string;
  readonly calls: number;
  readonly delivered: number;
  readonly refusedBeforeMoney: number;
  readonly settled: number;
  readonly settledAndUndelivered: number;
  /**
   * Of those, POSTs that the backend had when it died. No method prevents them, and they must not
   * be sent again.
   */
  readonly inHand: number;
  readonly others: Readonly<Record<string, number>>;
  /**
   * Of the undelivered: collected later with the same proof, on the list of refunds, and neither.
   */
  readonly collected: number;
  readonly due: number;
  readonly lost: number;
  /** How often the breaker opened. */
  readonly opened: number;
  /** Longest time from the backend's return to the next delivery, milliseconds. */
  readonly recoveryMs?: number;
}

interface Scenario {
  readonly name: string;
  readonly run: (calls: number) => Promise<Shown>;
}

type Options = Parameters<typeof openAwayWorld>[0];

export const SCENARIOS: readonly Scenario[] = [
  scenario('healthy', {}, async (world, calls) => {
    await world.merchant.start();
    await world.untilNotOpen();
    await world.buy({ buyers: BUYERS, calls });
    return undefined;
  }),
  scenario('down', {}, async (world, calls) => {
    await world.buy({ buyers: BUYERS, calls });
    return undefined;
  }),
  scenario('away for 1.5 s, again and again', {}, comingAndGoing(false)),
  scenario('away for 1.5 s, what may be repeated', {}, comingAndGoing(true)),
  scenario('away for 1.5 s, with calls in hand', { workMs: WORK_MS }, comingAndGoing(false)),
  scenario('restarts with its hook, again and again', { workMs: WORK_MS }, comingAndGoing(false, asksForRelease)),
  scenario('closes what it accepts', {}, inManner('closes')),
  scenario('cuts what it has read', {}, inManner('cuts')),
  scenario('hangs', { timeoutMs: SHORT_MS }, silent),
  scenario('hangs, and may be asked', { timeoutMs: SHORT_MS, probe: true }, silent),
];

function scenario(
  name: string,
  options: Options,
  story: (world: AwayWorld, calls: number) => Promise<number | undefined>,
): Scenario {
  return {
    name,
    async run(calls) {
      const world = await openAwayWorld(options);
      try {
        const recoveryMs = await story(world, calls);
        const { opened } = await world.breaker();
        const { seen } = world;
        const settledAndUndelivered = seen.undelivered.size;
        // Undelivered purchases are collected from a healthy backend.
        await world.merchant.kill();
        await world.merchant.start();
        await world.untilNotOpen();
        return {
          scenario: name,
          calls: seen.calls,
          delivered: seen.delivered,
          refusedBeforeMoney: seen.refused,
          settled: seen.settled.size,
          settledAndUndelivered,
          inHand: seen.inHand,
          others: Object.fromEntries(seen.others),
          ...(await world.collect()),
          opened,
          ...(recoveryMs === undefined ? {} : { recoveryMs: Math.round(recoveryMs) }),
        };
      } finally {
        await world.close();
      }
    },
  };
}

/** What the kubelet does before it stops the container of a backend that has the hook. */
async function asksForRelease({ gateway }: AwayWorld): Promise<void> {
  await askHook(gateway.managementUrl, '/release');
}

function comingAndGoing(
  repeatable: boolean,
  beforeKill: (world: AwayWorld) => Promise<void> = async () => undefined,
): (world: AwayWorld, calls: number) => Promise<number> {
  return async (world, calls) => {
    await world.merchant.start();
    await world.untilNotOpen();
    let done = false;
    const slowest = comeAndGo(world, () => done, beforeKill);
    await world.buy({ buyers: BUYERS, calls, repeatable });
    done = true;
    return slowest;
  };
}

/**
 * Kills and restarts the backend until it is done. Resolves with the longest time from a restart to
 * a delivery, milliseconds.
 */
async function comeAndGo(
  world: AwayWorld,
  isDone: () => boolean,
  beforeKill: (world: AwayWorld) => Promise<void>,
): Promise<number> {
  let slowest = 0;
  while (!isDone()) {
    await delay(THERE_MS);
    await beforeKill(world);
    await world.merchant.kill();
    await delay(AWAY_MS);
    await world.merchant.start();
    slowest = Math.max(slowest, await untilDelivered(world, isDone));
  }
  return slowest;
}

async function untilDelivered({ seen }: AwayWorld, isDone: () => boolean): Promise<number> {
  const since = performance.now();
  const before = seen.delivered;
  while (seen.delivered === before && !isDone()) await delay(5);
  return performance.now() - since;
}

function inManner(manner: Manner): (world: AwayWorld, calls: number) => Promise<undefined> {
  return async (world, calls) => {
    await world.merchant.start(manner);
    await world.buy({ buyers: BUYERS, calls });
    return undefined;
  };
}

/** A healthy backend that stops for some periods of the breaker, and goes on. */
async function silent(world: AwayWorld, calls: number): Promise<number> {
  const { merchant: backend, seen } = world;
  await backend.start();
  await world.untilNotOpen();
  const third = Math.floor(calls / 3);
  await world.buy({ buyers: BUYERS, calls: third });
  backend.stop();
  const since = performance.now();
  await world.buy({ buyers: BUYERS, calls: third, until: () => performance.now() - since > SILENT_MS });
  backend.goOn();
  let done = false;
  const recovery = untilDelivered(world, () => done);
  await world.buy({ buyers: BUYERS, calls: calls - third - third, until: () => seen.calls >= calls });
  done = true;
  return recovery;
}

/** Share of calls that a healthy backend delivers. */
const HEALTHY_SHARE = 0.999;
/**
 * From the backend's return to the next delivery, milliseconds: two seconds, a settlement, and a
 * margin for a busy machine.
 */
const RECOVERY_MS = 4_000;
/**
 * Calls that a period of the breaker may lose, where the backend takes requests and answers none.
 */
const LOST_A_PERIOD = 3;
/** Calls that are paid and under way when the backend stops. */
const UNDER_WAY = 6;

/** The broken promises of a scenario; empty when it kept all. */
export function faults(shown: Shown): readonly string[] {
  const {
    scenario,
    calls,
    delivered,
    refusedBeforeMoney,
    settled,
    settledAndUndelivered,
    inHand,
    lost,
    opened,
    recoveryMs = 0,
  } = shown;
  const wrong: string[] = [];
  const must = (holds: boolean, rule: string): void => void (holds || wrong.push(rule));
  must(lost === 0, 'what was paid is collected or on the list of refunds');
  must(recoveryMs <= RECOVERY_MS, 'delivers again within two seconds of the return');
  if (scenario === 'healthy') must(delivered >= calls * HEALTHY_SHARE, 'delivers 99.9 % when the backend is healthy');
  else if (scenario === 'down') must(settled === 0, 'takes no money at all');
  else if (scenario.startsWith('away')) must(settledAndUndelivered === inHand, 'delivers all that is paid');
  else if (scenario.startsWith('restarts')) {
    must(settledAndUndelivered === 0, 'leaves nothing undelivered that is paid');
    must(delivered + refusedBeforeMoney === calls, 'fails no call');
  } else must(settledAndUndelivered <= UNDER_WAY + LOST_A_PERIOD * opened, 'at most three a period of the breaker');
  return wrong;
}
