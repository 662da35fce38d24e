/** The restarts that an injected pod goes through while buyers pay. */

import { setTimeout as delay } from 'node:timers/promises';
import { GATEWAY_CONTAINER } from '../../src/sidecar/injection/names.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { type Buying, type Call, type Outcome, outcomeOf, startBuyers } from './buyers.ts';
import { type Deployment, startDeployment } from './deployment.ts';
import type { RunningPod } from './kubelet.ts';
import { MERCHANT, merchantImage, openPodWorld } from './world.ts';

/** How long new calls are served after the drain began, and the slowest call outlives it. */
interface Lengths {
  readonly windowSeconds: number;
  readonly slowestMs: number;
  /** Connections still come to a pod that ends for this long, milliseconds. */
  readonly removedAfterMs: number;
}

/** What the gateway has unless it is told otherwise, and the slowest call of the measurement. */
export const FULL: Lengths = { windowSeconds: 5, slowestMs: 8_000, removedAfterMs: 1_200 };
/** The same ratio, so that a test is short. */
export const SHORT: Lengths = { windowSeconds: 2, slowestMs: 3_200, removedAfterMs: 1_200 };

/** What a run must show; `control`: that something is lost where nothing holds the merchant. */
type Kind = 'rolling' | 'control' | 'restart' | 'kill';

export interface Shown extends Outcome {
  readonly kind: Kind;
  readonly scenario: string;
  readonly seconds: number;
  /** From the deletion of a pod to its end, seconds: the longest. */
  readonly drainSeconds?: number;
  /** Drains that took longer than their window, because a call did. */
  readonly outlived?: number;
  /** How often the container of the merchant was started in the end. */
  readonly starts?: number;
}

/** What of the pods a failure is explained with. */
export type Tell = (text: string) => void;

interface Rolling {
  readonly kind: 'rolling' | 'control';
  readonly scenario: string;
  /** As some way of injection made it. */
  readonly pod: Pod;
  readonly lengths: Lengths;
  readonly buyers: number;
  readonly leastCalls: number;
  readonly tell?: Tell;
}

const AGENTS = USUAL_OPTIONS.ports.agents;
const CHAIN = { mint: async () => undefined, balanceOf: async () => 0n };

/** A rolling restart of two replicas, again and again until there were enough calls. */
export async function rollingRestart(options: Rolling): Promise<Shown> {
  const { kind, scenario, pod, lengths, buyers, leastCalls, tell } = options;
  const world = await openPodWorld({ slowestMs: lengths.slowestMs });
  const began = performance.now();
  let deployment: Deployment | undefined;
  let buying: Buying | undefined;
  try {
    deployment = await startDeployment({
      ...{ template: withWindow(pod, lengths), replicas: 2, node: world.node, service: world.service },
      ...{ targetPort: AGENTS, removedAfterMs: lengths.removedAfterMs },
    });
    buying = startBuyers(CHAIN, { url: world.service.url, count: buyers, slowestMs: lengths.slowestMs });
    await untilFinished(buying, buyers);
    do await deployment.rollingRestart();
    while (buying.finished < leastCalls);
    const calls = await buying.stop();
    const shown = await outcomeOf(calls, world.settled, lengths.slowestMs);
    tell?.(told(calls, deployment.all));
    const drains = deployment.all.map(drainSeconds);
    return {
      ...{ kind, scenario, ...shown, seconds: secondsSince(began), drainSeconds: Math.max(...drains) },
      outlived: drains.filter((seconds) => seconds > lengths.windowSeconds + OUTLIVED_BY_SECONDS).length,
    };
  } finally {
    void buying?.stop().catch(() => undefined);
    await deployment?.stop();
    await world.close();
  }
}

interface Away {
  /** `restart`: a failed liveness probe, with its hook. `kill`: none. */
  readonly kind: 'restart' | 'kill';
  readonly scenario: string;
  readonly pod: Pod;
  readonly lengths: Lengths;
  readonly times: number;
  readonly tell?: Tell;
}

/** A drain without a call that outlives the window ends sooner after it, seconds. */
const OUTLIVED_BY_SECONDS = 0.8;

/** How long the merchant is away, milliseconds. */
const AWAY_MS = 1_500;
const AWAY_BUYERS = 6;
const BACK_MS = 60_000;

/** The merchant alone ends and listens again 1.5 s later, under six buyers. */
export async function merchantAway({ kind, scenario, pod, lengths, times, tell }: Away): Promise<Shown> {
  const world = await openPodWorld({
    slowestMs: lengths.slowestMs,
    merchant: merchantImage((start) => (start === 0 ? 0 : AWAY_MS)),
  });
  const began = performance.now();
  let deployment: Deployment | undefined;
  let buying: Buying | undefined;
  try {
    deployment = await startDeployment({
      ...{ template: withWindow(pod, lengths), replicas: 1, node: world.node, service: world.service },
      ...{ targetPort: AGENTS, removedAfterMs: lengths.removedAfterMs },
    });
    const [running] = deployment.pods;
    if (running === undefined) throw new Error('no pod runs');
    buying = startBuyers(CHAIN, { url: world.service.url, count: AWAY_BUYERS, slowestMs: QUICK_SLOWEST_MS });
    for (let time = 1; time <= times; time += 1) {
      await untilFinished(buying, buying.finished + 2 * AWAY_BUYERS);
      if (kind === 'kill') running.kill(MERCHANT);
      else await makeSick(running);
      await untilStarted(running, time + 1);
      await running.untilReady(BACK_MS);
    }
    await untilFinished(buying, buying.finished + 2 * AWAY_BUYERS);
    const calls = await buying.stop();
    const shown = await outcomeOf(calls, world.settled, QUICK_SLOWEST_MS);
    tell?.(told(calls, deployment.all));
    return { kind, scenario, ...shown, seconds: secondsSince(began), starts: running.starts(MERCHANT) };
  } finally {
    void buying?.stop().catch(() => undefined);
    await deployment?.stop();
    await world.close();
  }
}

/** The slowest call while the merchant comes and goes, milliseconds. */
const QUICK_SLOWEST_MS = 600;

/** From now on the merchant fails its liveness probe, so the kubelet restarts it. */
async function makeSick({ placed }: RunningPod): Promise<void> {
  const port = placed.pod.spec.containers.find(({ name }) => name === MERCHANT)?.ports?.[0]?.containerPort;
  await (await fetch(`http://127.0.0.1:${port}/sick`)).arrayBuffer();
}

/** Between two looks, milliseconds. */
const LOOK_MS = 20;

async function untilStarted(pod: RunningPod, starts: number): Promise<void> {
  while (pod.starts(MERCHANT) < starts) await delay(LOOK_MS);
}

async function untilFinished(buying: Buying, calls: number): Promise<void> {
  while (buying.finished < calls) await Promise.race([delay(LOOK_MS), buying.broken]);
}

/** The only change to an injected pod: its window has the length of this run. */
function withWindow(pod: Pod, { windowSeconds }: Lengths): Pod {
  const initContainers = (pod.spec.initContainers ?? []).map((container) =>
    container.name === GATEWAY_CONTAINER
      ? {
          ...container,
          env: (container.env ?? []).map((variable) =>
            variable.name === 'GATEWAY_DRAIN_SECONDS' ? { ...variable, value: String(windowSeconds) } : variable,
          ),
        }
      : container,
  );
  return { ...pod, spec: { ...pod.spec, initContainers } };
}

/** The negative control: nothing holds the merchant back. */
export function withoutRelease(pod: Pod): Pod {
  const containers = pod.spec.containers.map(({ lifecycle: _, ...container }) => container);
  return { ...pod, spec: { ...pod.spec, containers } };
}

function drainSeconds({ events }: RunningPod): number {
  const deleted = events.find(({ what }) => what === 'deleted');
  const last = events.at(-1);
  return deleted === undefined || last === undefined ? 0 : Math.round((last.ms - deleted.ms) / 100) / 10;
}

function secondsSince(began: number): number {
  return Math.round((performance.now() - began) / 100) / 10;
}

/** Failed calls, what happened in each pod, and what its containers wrote. */
function told(calls: readonly Call[], pods: readonly RunningPod[]): string {
  const failed = calls.filter(({ failure }) => failure !== undefined);
  const lines = failed.map(({ method, failure, nonce, from, to, takes }) =>
    JSON.stringify({ method, failure, nonce, from, to, takes }),
  );
  const events = pods.map(({ placed, events: happened }) => `${placed.name} ${JSON.stringify(happened)}`);
  return [...lines, ...events, ...pods.map((pod) => pod.output())].join('\n');
}

/** Of a merchant that is killed, each POST that it has in hand is lost: one for each buyer. */
const IN_HAND = 6;

/** The broken promises of a run; empty when it kept all. */
export function faults({ kind, failed, undelivered, slow, starts = 1, outlived = 0 }: Shown): readonly string[] {
  const wrong: string[] = [];
  const must = (holds: boolean, rule: string): void => void (holds || wrong.push(rule));
  if (kind === 'rolling') {
    must(failed === 0, 'no call fails');
    must(slow > 0 && outlived > 0, 'some call outlives the window, or the run shows nothing');
  }
  if (kind === 'rolling' || kind === 'restart') must(undelivered === 0, 'what is paid is delivered');
  if (kind === 'control') must(undelivered > 0, 'without /release something paid is not delivered');
  if (kind === 'kill') must(undelivered <= IN_HAND * (starts - 1), 'only what the merchant had in hand is lost');
  return wrong;
}
