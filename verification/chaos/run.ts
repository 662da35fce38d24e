/** One chaos run: faults, then none, then the comparison of the ledgers. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Crowd, gatherCrowd, type Market } from './buyer.ts';
import { type Action, type Controller, openPower, startController } from './controller.ts';
import { createFaults, openLine } from './faults.ts';
import { openFleet } from './fleet.ts';
import { type Evidence, type Excused, GOALS, type Goal, isPaid, judge, type Violation } from './judge.ts';
import { openRedisReader, openSqliteReader, readChain, type StoreReader, together } from './ledgers.ts';
import { openMerchant } from './merchant.ts';
import { disturbNetworks, openNetworks, peerOf } from './networks.ts';
import type { Plan } from './plan.ts';

/** Over each store. */
const GATEWAYS = { redis: 2, sqlite: 1 };
const LOOK_EVERY_MS = 100;

/** Reports progress. */
type Progress = (line: string) => void;

/**
 * One run: faults, then none, then the comparison of the ledgers. Ends all that it started, in any
 * case.
 */
export async function runChaos(plan: Plan, progress: Progress): Promise<Report> {
  const running: (() => Promise<unknown> | unknown)[] = [];
  try {
    return reportOf(plan, await play(plan, progress, (end) => running.push(end)));
  } finally {
    for (const end of running.reverse()) await end();
  }
}

async function play(
  plan: Plan,
  progress: Progress,
  onEnd: (end: () => Promise<unknown> | unknown) => void,
): Promise<Outcome> {
  const directory = await mkdtemp(join(tmpdir(), 'acg-chaos-'));
  onEnd(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, 'store.db');
  const power = plan.store === 'redis' ? await openPower() : undefined;
  if (power !== undefined) onEnd(power.stop);
  const faults = createFaults(plan.seed);
  const networks = await openNetworks(plan, faults, onEnd);
  const chains = networks.map(({ chain }) => chain);
  const backend = await openMerchant(plan, faults);
  onEnd(backend.stop);
  const { lines, redisLine: redisRate } = plan.faults;
  const [redisLine, merchantLine] = await Promise.all([
    power && openLine({ path: power.redis.socketPath }, 'redis-line', redisRate, faults),
    openLine(peerOf(backend.url), 'merchant-line', lines, faults),
  ]);
  for (const line of [redisLine, merchantLine]) if (line !== undefined) onEnd(line.stop);
  const storage = redisLine ? { redis: { url: `redis://127.0.0.1:${redisLine.port}` } } : { sqlite: { path } };
  const backendUrl = `http://127.0.0.1:${merchantLine.port}`;
  const posts = await openFleet(GATEWAYS[plan.store], { networks, backendUrl, storage, directory });
  onEnd(() => Promise.all(posts.map((post) => post.stop())));

  const disturbUntil = Date.now() + plan.disturbAtMostMs;
  const giveUpAt = disturbUntil + plan.settleDownMs;
  const market: Market = { posts, chains, plan, faultsOver: false, giveUpAt, removed: undefined };
  const crowd = await gatherCrowd(market);
  const controller = startController(plan, posts, power);
  onEnd(() => controller.stop().catch(() => undefined));
  const disturbance = disturbNetworks(networks, market, () => crowd.calls.length);
  onEnd(() => disturbance.stop().catch(() => undefined));
  const enough = (): boolean =>
    Date.now() > disturbUntil || (crowd.calls.length >= plan.calls && controller.done() && disturbance.done());
  const timer = setInterval(
    () => progress(`${crowd.calls.length} calls, kills ${JSON.stringify(controller.kills)}`),
    5_000,
  );
  onEnd(() => clearInterval(timer));

  const stormBegan = Date.now();
  const buying = crowd.buy(enough);
  // Awaited when the storm is over.
  buying.catch(() => undefined);
  while (!enough()) await delay(LOOK_EVERY_MS);
  await controller.stop();
  await disturbance.stop();
  faults.end();
  market.faultsOver = true;
  market.giveUpAt = Date.now() + plan.settleDownMs;
  progress(`no more faults after ${Date.now() - stormBegan} ms`);

  const reader = power ? openRedisReader(power.redis.socketPath) : openSqliteReader(path);
  onEnd(() => reader.close());
  const lastOpenAt = await untilQuiet(
    reader,
    buying,
    () => networks.every(({ facilitator }) => facilitator.owed === 0),
    plan.settleDownMs,
  );
  const lastFaultAt = Math.max(controller.lastAt, disturbance.lastAt, faults.lastAt);
  progress(`quiet ${lastOpenAt - lastFaultAt} ms after the last fault`);
  await comeBack(crowd, reader, plan);
  const open = [...(await reader.open()), ...(await reader.waiting())];
  const ledgers = await Promise.all(networks.map(({ chain, payTo, units }) => readChain(chain, payTo, units)));
  const store = await reader.read();
  const cuts = power?.cuts ?? [];
  const strays = networks.flatMap(({ facilitator }) => facilitator.strays);
  const evidence = { calls: crowd.calls, chain: together(ledgers), work: backend.work, store, cuts, strays, open };
  return {
    ...evidence,
    ...judge(evidence),
    kills: controller.kills,
    actions: [...controller.actions, ...disturbance.actions],
    faults: faults.counts,
    ...(networks.length === 1 ? {} : { networks: disturbance.counts }),
    recoveryMs: Math.max(0, lastOpenAt - lastFaultAt),
    complaints: posts.flatMap(({ complaints }) => complaints),
  };
}

/**
 * Waits until no buyer has a call and no record is open. @returns when something was last seen
 * open, Unix milliseconds
 */
async function untilQuiet(
  reader: StoreReader,
  buying: Promise<void>,
  nothingOwed: () => boolean,
  atMostMs: number,
): Promise<number> {
  let isBuying = true;
  const over = (): void => {
    isBuying = false;
  };
  buying.then(over, over);
  const deadline = Date.now() + atMostMs;
  let lastOpenAt = Date.now();
  for (;;) {
    const isOpen = (await reader.open()).length > 0 || isBuying || !nothingOwed();
    if (isOpen) lastOpenAt = Date.now();
    if (!isOpen || Date.now() > deadline) break;
    await delay(LOOK_EVERY_MS);
  }
  await buying;
  return lastOpenAt;
}

/** Buyers that left come back; the records they open must close as well. */
async function comeBack(crowd: Crowd, reader: StoreReader, plan: Plan): Promise<void> {
  await crowd.comeBack();
  await untilQuiet(reader, Promise.resolve(), () => true, plan.settleDownMs);
}

/** The results of a run. */
interface Outcome extends Evidence {
  readonly violations: readonly Violation[];
  readonly excused: Excused;
  readonly kills: Controller['kills'];
  readonly actions: readonly Action[];
  readonly faults: Readonly<Record<string, number>>;
  /** What the networks went through, where there are two. */
  readonly networks?: Readonly<Record<string, number>>;
  /** From the last fault to the last open record, milliseconds. */
  readonly recoveryMs: number;
  readonly complaints: readonly string[];
}

/** What a run measured against its goals, as one JSON line. */
export interface Report
  extends Pick<Outcome, 'kills' | 'faults' | 'excused' | 'recoveryMs'>,
    Partial<Pick<Outcome, 'networks' | 'violations' | 'actions' | 'complaints'>> {
  readonly seed: number;
  readonly calls: number;
  /** Calls with a payment that the chain shows. */
  readonly paidCalls: number;
  readonly kinds: Readonly<Record<string, number>>;
  /** Calls with an answer, by the channel of their buyer. */
  readonly channels: Readonly<Record<string, number>>;
  readonly cuts: readonly { readonly windowMs: number; readonly lostBytes: number }[];
  /** All have to be 0. */
  readonly goals: Readonly<Record<Goal, number>>;
}

function reportOf({ seed }: Plan, outcome: Outcome): Report {
  const { calls, chain, violations, excused, kills, actions, faults, cuts, recoveryMs, complaints, networks } = outcome;
  const broken = (goal: Goal): number => violations.filter((violation) => violation.goal === goal).length;
  const answered = calls.filter(({ proofs }) => proofs.some(({ answers }) => answers.length > 0));
  return {
    seed,
    calls: calls.length,
    paidCalls: calls.filter(({ proofs }) => proofs.some((proof) => isPaid(chain, proof))).length,
    kinds: counted(calls.map(({ kind }) => kind)),
    channels: counted(answered.map(({ channel }) => channel)),
    kills,
    faults,
    ...(networks === undefined ? {} : { networks: { ...networks, ...paidBy(outcome) } }),
    cuts: cuts.map(({ sampledAt, killedAt, lostBytes }) => ({ windowMs: killedAt - sampledAt, lostBytes })),
    goals: Object.fromEntries(GOALS.map((goal) => [goal, broken(goal)])) as Record<Goal, number>,
    excused,
    recoveryMs,
    // For a replay.
    ...(violations.length === 0 ? {} : { violations, actions, complaints }),
  };
}

/** Payments by the number of their chain. */
function paidBy({ chain }: Outcome): Readonly<Record<string, number>> {
  const paid = [...chain.spent.values()].filter(({ how }) => how === 'paid');
  return counted(paid.map(({ chainId }) => `paid on ${chainId}`));
}

function counted(names: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]));
}
