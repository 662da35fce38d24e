/**
 * The suite of overload: how much of its own peak a gateway keeps when many more connections ask
 * than it can serve and each asks again at once, beside what the usual recipe keeps of its own peak
 * in the same rounds. All share the machine with the load, so only shares are compared.
 */

import { type Contestant, PEER_QUESTION } from './contestant.ts';
import { gatewayOverloaded } from './peers/gateway.ts';
import { hpmRecipe } from './peers/hpm-recipe.ts';
import { type Ground, groundFor, type Measured, type MeasuringParts, type Started } from './stage.ts';

/** Connections: the peak, 8 times and some 30 times as many. */
const PEAK = 32;
const CROWDS = { 'goodput-8x': 256, 'goodput-30x': 1_000 } as const;
const ROUNDS = 6;
const TURN_SECONDS = 2;
/** Before each turn: limits adapt, held connections fill. */
const RUN_IN_SECONDS = 1;
const WARM_UP_SECONDS = 8;

/** Answers a second of one side, by connections. */
type Rates = ReadonlyMap<number, number>;

/** Rows `goodput-8x` and `goodput-30x`. */
export async function measureOverload(parts: MeasuringParts): Promise<Measured> {
  await using ends = new AsyncDisposableStack();
  const ground = await groundFor(ends, parts);
  const recipe: Contestant = { ...hpmRecipe, question: PEER_QUESTION };
  const own = await ground.stage.start(gatewayOverloaded);
  const peer = await ground.stage.start(recipe);
  parts.tell('warming up');
  for (const side of [own, peer]) await rate(side, PEAK, WARM_UP_SECONDS, ground, parts.signal);
  const values = new Map<string, number[]>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const rates = new Map<Started, Rates>();
    for (const side of round % 2 === 0 ? [own, peer] : [peer, own])
      rates.set(side, await ratesOf(side, ground, parts.signal));
    for (const [id, crowd] of Object.entries(CROWDS)) {
      const [ours, theirs] = [own, peer].map((side) => shareOfPeak(rates.get(side), crowd));
      if (ours === undefined || theirs === undefined) continue;
      values.set(id, [...(values.get(id) ?? []), ours / theirs]);
    }
    const told = [own, peer].map((side) => `${side.contestant.id} ${said(rates.get(side))}`);
    parts.tell(`round ${round + 1} of ${ROUNDS}: ${told.join('; ')}`);
  }
  return new Map([...values].map(([id, all]) => [id, { values: all }]));
}

async function ratesOf(side: Started, ground: Ground, signal: AbortSignal): Promise<Rates> {
  const rates = new Map<number, number>();
  for (const connections of [PEAK, ...Object.values(CROWDS)]) {
    await rate(side, connections, RUN_IN_SECONDS, ground, signal);
    rates.set(connections, await rate(side, connections, TURN_SECONDS, ground, signal));
  }
  return rates;
}

async function rate(
  { origin, contestant }: Started,
  connections: number,
  seconds: number,
  { load }: Ground,
  signal: AbortSignal,
): Promise<number> {
  const { question } = contestant;
  const { requests } = await load.fire({ origin, question, connections, seconds, retries: true }, signal);
  return requests / seconds;
}

function shareOfPeak(rates: Rates | undefined, connections: number): number | undefined {
  const [crowded, peak] = [rates?.get(connections), rates?.get(PEAK)];
  return crowded === undefined || peak === undefined ? undefined : crowded / peak;
}

function said(rates: Rates | undefined): string {
  return [...(rates ?? [])].map(([connections, perSecond]) => `${connections}: ${perSecond.toFixed(0)}/s`).join(', ');
}
