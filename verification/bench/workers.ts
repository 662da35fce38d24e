/**
 * The suite of workers: what a second process gains a gateway, beside what it gains the usual
 * recipe under node:cluster. Load, backend and Redis share the two cores with them, so neither can
 * double; only the gains are compared.
 */

import type { Contestant } from './contestant.ts';
import { type Ground, groundFor, type Measured, type MeasuringParts } from './ground.ts';
import { gatewayWorkers } from './peers/gateway.ts';
import { hpmRecipe } from './peers/hpm-recipe.ts';
import { recipeCluster } from './peers/recipe-cluster.ts';
import type { Started } from './stage.ts';

const ROUNDS = 8;
const TURN_SECONDS = 1.5;
const RUN_IN_SECONDS = 0.3;
const WARM_UP_SECONDS = 6;
const CONNECTIONS = 64;
/** What a gateway that does not know the setting says of it. */
const UNKNOWN_SETTING = /server\.workers|workers/;

/** Rows `workers`, `workers-own` and `workers-peer`. */
export async function measureWorkers(parts: MeasuringParts): Promise<Measured> {
  await using ends = new AsyncDisposableStack();
  const ground = await groundFor(ends, parts, true);
  const { stage } = ground;
  const two = await stage.start(gatewayWorkers(2)).catch((error: unknown) => refusal(error));
  if (typeof two === 'string')
    return new Map(['workers', 'workers-own', 'workers-peer'].map((id) => [id, { missing: two }]));
  const alone: Contestant = { ...hpmRecipe, id: 'recipe-1' };
  const sides = {
    one: await stage.start(gatewayWorkers(1)),
    two,
    recipe: await stage.start(alone),
    cluster: await stage.start(recipeCluster(2)),
  };
  parts.tell('warming up');
  for (const side of Object.values(sides)) await rate(side, WARM_UP_SECONDS, ground, parts.signal);
  const gains: { own: number; peer: number }[] = [];
  const all = Object.entries(sides) as readonly [keyof typeof sides, Started][];
  for (let round = 0; round < ROUNDS; round += 1) {
    const rates = { one: 0, two: 0, recipe: 0, cluster: 0 };
    for (const [name, side] of round % 2 === 0 ? all : all.toReversed()) {
      await rate(side, RUN_IN_SECONDS, ground, parts.signal);
      rates[name] = await rate(side, TURN_SECONDS, ground, parts.signal);
    }
    gains.push({ own: rates.two / rates.one, peer: rates.cluster / rates.recipe });
    const told = Object.entries(rates).map(([name, perSecond]) => `${name} ${perSecond.toFixed(0)}/s`);
    parts.tell(`round ${round + 1} of ${ROUNDS}: ${told.join(', ')}`);
  }
  return new Map([
    ['workers', { values: gains.map(({ own, peer }) => own / peer) }],
    ['workers-own', { values: gains.map(({ own }) => own) }],
    ['workers-peer', { values: gains.map(({ peer }) => peer) }],
  ]);
}

async function rate(
  { origin, contestant }: Started,
  seconds: number,
  { load }: Ground,
  signal: AbortSignal,
): Promise<number> {
  const task = { origin, question: contestant.question, connections: CONNECTIONS, seconds };
  const { requests, elapsedMs } = await load.fire(task, signal);
  return (requests * 1_000) / elapsedMs;
}

/** Why the gateway did not take the setting. @throws Error any other */
function refusal(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (!UNKNOWN_SETTING.test(message)) throw error;
  return 'the gateway refuses server.workers';
}
