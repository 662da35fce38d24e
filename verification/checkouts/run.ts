import { SETTINGS } from '../../spec/checkouts/bed.ts';
import { modelCommits } from '../../spec/store/model.ts';
import type { KeyedCall, KeyedEnd } from '../../src/checkouts/attempts.ts';
import { documentClaims } from '../../src/checkouts/document-claims.ts';
import { createSessions } from '../../src/checkouts/sessions.ts';
import { type Commits, createTransact } from '../../src/store/port/commit.ts';
import { type Chance, chanceOf } from '../chaos/sim/chance.ts';
import {
  type CallEnd,
  createWorld,
  DEPLOYMENT,
  type Gateways,
  openGateways,
  type SimBackend,
  simBackend,
  type World,
} from './world.ts';

const MANNERS: readonly Manner[] = ['reports', 'settles', 'deduplicates'];
/**
 * How long faults happen, and then how long none do, milliseconds: enough for every call to end.
 */
const STORM_MS = 3_600_000;
const QUIET_MS = 600_000;
/** Calls of one connection at most while faults happen. */
const MOST_CALLS = 12;
const SESSION = 'cs_1';
const GATEWAYS = 3;
/** Those that open sessions. */
const CLIENTS = ['agent', 'another'];
const MOST_SESSIONS = 3;

/** The result of one seed. */
interface Outcome {
  readonly seed: number;
  readonly manner: Manner;
  readonly violations: readonly string[];
  readonly tally: ReadonlyMap<string, number>;
  readonly trace: readonly string[];
}

/** The options of a run besides its seed. */
interface RunOptions {
  readonly traced?: boolean;
}

interface Sim {
  readonly world: World;
  readonly gateways: Gateways;
  readonly backend: SimBackend;
  readonly laws: Laws;
  readonly chance: Chance;
}

/**
 * Buyers on one session, gateways that die, a faulty backend; then no faults, and every key gets an
 * answer.
 */
export async function runSeed(seed: number, { traced = false }: RunOptions = {}): Promise<Outcome> {
  const chance = chanceOf(seed);
  const manner = MANNERS[seed % MANNERS.length] ?? 'reports';
  const world = createWorld(chanceOf(~seed), traced);
  const laws = createLaws();
  const backend = simBackend(world, laws, manner, chanceOf(seed ^ 0x5eed));
  const store = modelCommits(() => Math.floor(world.schedule.now));
  const gateways = openGateways(world, { store, backend, laws }, manner);
  const sim: Sim = { world, gateways, backend, laws, chance };

  const last = crowd(sim, manner);
  await world.pass(STORM_MS);
  world.faultsOver = true;
  const open = new Set(last());
  for (const call of open) void untilAnswered(sim, call).then(() => open.delete(call));
  await world.pass(QUIET_MS);
  for (const { key } of open) laws.broken(`${key} never comes to an answer`);
  await checkOwners(sim, store);
  return { seed, manner, violations: laws.violations, tally: gateways.tally, trace: world.schedule.trace ?? [] };
}

/** Starts all callers. Returns the calls that must get an answer in the end. */
function crowd(sim: Sim, manner: Manner): () => readonly KeyedCall[] {
  const { chance, world } = sim;
  const last = new Map<string, KeyedCall>();
  const begin = (name: string, walk: () => Promise<void>): void =>
    world.later(chance.pick([0, chance.below(500), chance.below(40_000)]), `${name} comes`, () => void walk());
  // Several connections of one buyer use one key. A buyer changes its key only after an answer that
  // reports a failure: without an answer the call may have happened, and only the backend knows.
  const copies = chance.pick([1, 1, 2, 4]);
  const changes = copies === 1 && manner !== 'deduplicates' && chance.happens(0.6);
  for (let copy = 1; copy <= copies; copy += 1)
    begin(`buyer ${copy}`, () => buy(sim, changes, (call) => void last.set('buyer', call)));
  if (manner !== 'deduplicates' && chance.happens(0.3))
    begin('canceler', () => cancel(sim, (call) => void last.set('canceler', call)));
  for (const client of CLIENTS)
    if (chance.happens(0.4)) begin(`${client} opens`, () => open(sim, client, (call) => void last.set(client, call)));
  return () => [...last.values()];
}

/** A client that opens a session, with one key or the next. */
async function open(sim: Sim, clientId: string, uses: (call: KeyedCall) => void): Promise<void> {
  for (let key = 1; key <= MOST_SESSIONS; key += 1) {
    const call: KeyedCall = {
      clientId,
      operation: 'createCheckoutSession',
      sessionId: undefined,
      key: `open-${key}`,
      body: { key },
    };
    uses(call);
    for (let calls = 0; calls < MOST_CALLS; calls += 1) {
      const end = await make(sim, call, sim.chance.happens(0.8) ? Number.POSITIVE_INFINITY : 5_000);
      if (end.kind === 'answered') break;
      await pause(sim, end);
    }
  }
}

/** A session that a client got is its own, and does not exist for others. */
async function checkOwners({ laws, world }: Sim, store: Commits): Promise<void> {
  const time = { now: () => world.schedule.now, sleep: async () => undefined };
  const claims = documentClaims(createTransact(store));
  const sessions = createSessions({ claims, settings: SETTINGS, deploymentId: DEPLOYMENT, servesUnknown: false, time });
  for (const [sessionId, owner] of laws.sessions)
    for (const client of CLIENTS) {
      const { kind } = await sessions.access(client, sessionId);
      if (kind !== (client === owner ? 'granted' : 'absent'))
        laws.broken(`${sessionId} of ${owner} is ${kind} for ${client}`);
    }
}

async function buy(sim: Sim, changesKey: boolean, uses: (call: KeyedCall) => void): Promise<void> {
  let key = 1;
  for (let calls = 0; calls < MOST_CALLS; calls += 1) {
    const call = callOf('completeCheckoutSession', `buy-${key}`);
    uses(call);
    const patienceMs = changesKey || sim.chance.happens(0.7) ? Number.POSITIVE_INFINITY : sim.chance.below(40_000);
    const end = await make(sim, call, patienceMs);
    if (end.kind === 'answered' && end.answer.status === 200) return;
    if (changesKey && end.kind === 'failed' && sim.chance.happens(0.7)) key += 1;
    await pause(sim, end);
  }
}

async function cancel(sim: Sim, uses: (call: KeyedCall) => void): Promise<void> {
  const call = callOf('cancelCheckoutSession', 'cancel-1');
  uses(call);
  for (let calls = 0; calls < MOST_CALLS; calls += 1) {
    const end = await make(sim, call, Number.POSITIVE_INFINITY);
    if (end.kind === 'answered') return;
    await pause(sim, end);
  }
}

async function untilAnswered(sim: Sim, call: KeyedCall): Promise<void> {
  for (;;) {
    const end = await make(sim, call, Number.POSITIVE_INFINITY);
    if (end.kind === 'answered') return;
    await pause(sim, end);
  }
}

async function make(
  { world, gateways, backend, laws, chance }: Sim,
  call: KeyedCall,
  patienceMs: number,
): Promise<CallEnd> {
  const end = await gateways.call(chance.below(GATEWAYS), call, patienceMs);
  if (end.kind === 'answered') laws.answered(call, end, backend.orders(SESSION) > 0);
  if (end.kind === 'answered' && end.answer.status === 201) laws.opened(call, backend.openedIn(end.answer));
  if (world.schedule.trace !== undefined) world.schedule.log(`${call.key} gets ${JSON.stringify(end)}`);
  return end;
}

/** Waits as long as Retry-After, or a random time without one. */
function pause({ world, chance }: Sim, end: CallEnd): Promise<void> {
  const ms = 'retryAfterS' in end ? end.retryAfterS * 1_000 : chance.pick([10, 1_000, 20_000]);
  return new Promise((resolve) => world.later(ms, 'waits', resolve));
}

function callOf(operation: KeyedCall['operation'], key: string): KeyedCall {
  return { clientId: 'agent', operation, sessionId: SESSION, key, body: { key } };
}

/** The report of a failed run: the broken laws, the command that repeats it, and every step. */
export function report({ seed, manner, violations, trace }: Outcome): string {
  return [...violations, `seed ${seed}, the backend ${manner}`, ...trace].join('\n');
}

/** What must always hold. */
export interface Laws {
  readonly violations: readonly string[];
  broken(what: string): void;
  /** A caller got an answer. */
  answered(call: KeyedCall, end: Extract<KeyedEnd, { kind: 'answered' }>, ordered: boolean): void;
  /** A caller got a session that was opened for it. */
  opened(call: KeyedCall, sessionId: string): void;
  /** Every session that a caller got, and its client. */
  readonly sessions: ReadonlyMap<string, string>;
  /** The store lost the end of an attempt: its answer is not kept, so a later one may differ. */
  unstored(): void;
}

function createLaws(): Laws {
  const violations: string[] = [];
  const answers = new Map<string, string>();
  const sessions = new Map<string, string>();
  let unstored = false;
  return {
    violations,
    sessions,
    opened({ clientId }, sessionId) {
      const owner = sessions.get(sessionId) ?? clientId;
      sessions.set(sessionId, owner);
      if (owner !== clientId) violations.push(`${sessionId} of ${owner} was shown to ${clientId}`);
    },
    broken: (what) => void violations.push(what),
    unstored() {
      unstored = true;
    },
    answered({ clientId, operation, sessionId, key }, { answer, from }, ordered) {
      // A conflict goes out; whether it was kept as the answer shows when it is sent again.
      if (answer.status === 409 && from === 'backend') return;
      const text = `${answer.status} ${Buffer.from(answer.body).toString('latin1')}`;
      const name = `${clientId} ${operation} ${sessionId} ${key}`;
      const before = answers.get(name) ?? text;
      answers.set(name, text);
      if (before !== text && !unstored) violations.push(`two answers to ${name}: ${before}; ${text} (${from})`);
      if (operation === 'completeCheckoutSession' && answer.status === 200 && !ordered)
        violations.push(`${name} names an order that is not there (${from})`);
    },
  };
}

/**
 * How the backend behaves, and so what the machine may rely on (acp 12.5). `reports`: ignores keys,
 * acts within the timeout or shows that it works, and can always be read. `settles`: ignores keys,
 * may act long after the timeout without a sign of it, and often cannot be read: read-back-only.
 * `deduplicates`: uses keys, may act at any time, and often cannot be read.
 */
export type Manner = 'reports' | 'settles' | 'deduplicates';

/** Of every operation, milliseconds. */
export const TIMEOUT_MS = 25_000;
