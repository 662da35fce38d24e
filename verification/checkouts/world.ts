import { SETTINGS } from '../../spec/checkouts/bed.ts';
import type {
  AttemptEnd,
  ClaimWatch,
  FinalAnswer,
  KeyedCall,
  KeyedEnd,
  ReadBack,
  Work,
} from '../../src/checkouts/attempts.ts';
import { documentClaims } from '../../src/checkouts/document-claims.ts';
import { createIdempotency } from '../../src/checkouts/machine.ts';
import { createSessions } from '../../src/checkouts/sessions.ts';
import { type Commits, createTransact } from '../../src/store/port/commit.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import type { Chance } from '../chaos/sim/chance.ts';
import { type Actor, Schedule, type Step } from '../chaos/sim/schedule.ts';
import { type Laws, type Manner, TIMEOUT_MS } from './run.ts';

/** Timeout of a command of the store, milliseconds. */
const COMMAND_MS = 500;

/** A process: it ends, or stands still for a while, before any reply that it gets. */
interface Process extends Actor {
  alive: boolean;
  pausedUntil: number;
  /** Called when the process ends. */
  readonly atEnd: Set<() => void>;
}

/** The clock, and the connections of all processes. */
export interface World {
  readonly schedule: Schedule;
  /** Ends all faults. */
  faultsOver: boolean;
  /** Runs even when the process is dead. */
  later(ms: number, label: string, run: () => void): void;
  /** Resolves when a process gets a reply; never when it has died before. */
  reply(process: Process, label: string, ms: number): Promise<void>;
  /** The store as a process reaches it: over a connection that loses commands and replies. */
  line(process: Process, store: Commits): Commits;
  process(name: string): Process;
  /** Runs the steps of a time, milliseconds. */
  pass(ms: number): Promise<void>;
}

/** Most steps of one run. */
const MOST_STEPS = 20_000;

export function createWorld(chance: Chance, traced: boolean): World {
  const schedule = new Schedule(traced);
  const processes = new Map<string, Process>();

  const injectFault = ({ actor }: Step): void => {
    const process = processes.get(actor?.name ?? '');
    if (process === undefined || world.faultsOver) return;
    if (chance.happens(0.04)) {
      process.alive = false;
      schedule.log(`${process.name} dies`);
      for (const end of process.atEnd) end();
    } else if (chance.happens(0.03)) {
      process.pausedUntil = schedule.now + chance.pick([1_000, 10_000, 40_000, 90_000]);
      schedule.log(`${process.name} stands still`);
    }
  };

  const world: World = {
    schedule,
    faultsOver: false,
    later: (ms, label, run) => schedule.after(ms, { kind: 'world', label, actor: undefined, run }),
    reply: (actor, label, ms) =>
      new Promise((resolve) => schedule.after(ms, { kind: 'reply', label, actor, run: resolve })),
    line(process, store) {
      const over = async <Answer>(label: string, command: () => Promise<Answer>): Promise<Answer> => {
        const fault = world.faultsOver
          ? 'none'
          : chance.pick(['none', 'none', 'none', 'none', 'none', ...FAULTS] as const);
        const lost = fault !== 'none' && chance.happens(0.3) ? fault : 'none';
        const { promise: ran, resolve } = Promise.withResolvers<Answer | undefined>();
        world.later(1 + chance.below(10), `store ${label}${lost === 'none' ? '' : `, ${lost} lost`}`, () =>
          resolve(lost === 'request' ? undefined : command()),
        );
        const answer = await ran;
        await world.reply(process, label, lost === 'none' ? 1 + chance.below(10) : chance.pick([1, COMMAND_MS]));
        if (lost !== 'none' || answer === undefined) throw new StoreError(new Error(`${lost} lost`));
        return answer;
      };
      return {
        ...store,
        commit: (commit, how) => over('commit', () => store.commit(commit, how)),
        read: (keys) => over('read', () => store.read(keys)),
      };
    },
    process(name) {
      const made: Process = { name, alive: true, pausedUntil: 0, atEnd: new Set() };
      processes.set(name, made);
      return made;
    },
    async pass(ms) {
      const conductor = { injectFault, arrivesWithoutSender: () => true, nextRound: () => undefined };
      if (!(await schedule.run(conductor, schedule.now + ms, MOST_STEPS))) throw new Error('the run does not end');
    },
  };
  return world;
}

const FAULTS = ['request', 'reply'] as const;

/** Longest that the machine waits for a session to be read, milliseconds. */
const READ_TIMEOUT_MS = 10_000;
/** How long after it was sent a call may take effect, milliseconds. */
const LATEST_MS: Readonly<Record<Manner, number>> = { reports: 24_900, settles: 45_000, deduplicates: 120_000 };

export interface SimBackend {
  /** The id of the session that an answer opens. */
  openedIn(answer: FinalAnswer): string;
  orders(sessionId: string): number;
  /** `asker`: the process that makes the call; its replies end with it. */
  work(call: KeyedCall, asker: Parameters<World['reply']>[0]): Work;
}

interface Session {
  orders: number;
  canceled: boolean;
  /** Calls that arrived and have not taken effect yet. */
  readonly atWork: Set<{ readonly until: number }>;
}

/**
 * Completes each time it is asked, unless the session is canceled; cancels only without an order.
 */
export function simBackend(world: World, laws: Laws, manner: Manner, chance: Chance): SimBackend {
  const { schedule } = world;
  const sessions = new Map<string, Session>();
  const byKey = new Map<string, FinalAnswer>();
  let answers = 0;
  let opened = 0;

  const sessionOf = ({ sessionId = '' }: { readonly sessionId: string | undefined }): Session => {
    const session = sessions.get(sessionId) ?? { orders: 0, canceled: false, atWork: new Set() };
    sessions.set(sessionId, session);
    return session;
  };
  const answerOf = (status: number, what: string): FinalAnswer => {
    answers += 1;
    return { status, body: Buffer.from(JSON.stringify({ what, answers })) };
  };
  const act = (call: KeyedCall, backendKey: string): FinalAnswer => {
    const kept = manner === 'deduplicates' ? byKey.get(backendKey) : undefined;
    const answer = kept ?? carriedOut(call);
    byKey.set(backendKey, answer);
    return answer;
  };
  const carriedOut = (call: KeyedCall): FinalAnswer => {
    if (call.operation === 'createCheckoutSession') {
      // A faulty backend gives one id twice. One that deduplicates by keys would always do so.
      const twice = manner !== 'deduplicates' && opened > 0 && !world.faultsOver && chance.happens(0.15);
      if (!twice) opened += 1;
      return answerOf(201, `opened ${twice ? 1 + chance.below(opened) : opened}`);
    }
    const session = sessionOf(call);
    if (call.operation === 'cancelCheckoutSession') {
      if (session.orders > 0) return answerOf(409, 'completed');
      session.canceled = true;
      return answerOf(200, 'canceled');
    }
    if (session.canceled) return answerOf(409, 'canceled');
    if (!world.faultsOver && chance.happens(0.1)) return answerOf(400, 'declined');
    session.orders += 1;
    if (session.orders > 1) laws.broken(`session ${call.sessionId} has ${session.orders} orders`);
    return answerOf(200, `order ${session.orders}`);
  };

  const attempt = async (
    call: KeyedCall,
    backendKey: string,
    asker: Parameters<World['reply']>[0],
  ): Promise<AttemptEnd> => {
    if (!world.faultsOver && chance.happens(0.08)) {
      await world.reply(asker, 'refused connection', 2);
      return { kind: 'not_executed', failure: new Error('unreachable') };
    }
    const slow = !world.faultsOver && chance.happens(0.25);
    const effectMs = slow ? chance.below(LATEST_MS[manner]) : 20 + chance.below(500);
    const acts = world.faultsOver || chance.happens(0.75);
    const ends = world.faultsOver
      ? 'answer'
      : chance.pick(['answer', 'answer', 'answer', 'status', 'reset', 'hang'] as const);
    const session = sessionOf(call);
    const work = { until: schedule.now + Math.min(effectMs, TIMEOUT_MS) };
    // Late effects are the backend's own; before them no second call may run.
    const exclusive = call.operation !== 'createCheckoutSession' && manner !== 'deduplicates';
    if (exclusive && [...session.atWork].some(({ until }) => until > schedule.now))
      laws.broken(`two calls at once on session ${call.sessionId}`);
    session.atWork.add(work);
    let answer: FinalAnswer | undefined;
    world.later(effectMs, `backend ${acts ? 'acts' : 'fails'}`, () => {
      session.atWork.delete(work);
      if (acts) answer = act(call, backendKey);
    });
    const replyMs = ends === 'hang' ? Number.POSITIVE_INFINITY : effectMs + 5;
    await world.reply(asker, `backend ${ends}`, Math.min(replyMs, TIMEOUT_MS));
    if (replyMs > TIMEOUT_MS) return { kind: 'unknown', why: 'timeout', failure: new Error('504') };
    if (ends === 'answer' && answer !== undefined)
      return answer.status === 201 ? { kind: 'answer', answer, opened: openedIn(answer) } : { kind: 'answer', answer };
    return { kind: 'unknown', why: ends === 'reset' ? 'reset' : 'status', failure: new Error('502') };
  };

  const read = async (call: KeyedCall, asker: Parameters<World['reply']>[0]): Promise<ReadBack> => {
    const slow = !world.faultsOver && chance.happens(0.1);
    const lookMs = 2 + chance.below(slow ? READ_TIMEOUT_MS - 100 : 200);
    const fails = manner !== 'reports' && !world.faultsOver && chance.happens(0.2);
    let found: ReadBack = { kind: 'unreadable' };
    world.later(lookMs, 'backend is read', () => {
      if (!fails) found = standingOf(call);
    });
    await world.reply(asker, 'session read', lookMs + 5);
    return found;
  };
  const standingOf = (call: KeyedCall): ReadBack => {
    const { orders, canceled, atWork } = sessionOf(call);
    const happened = call.operation === 'cancelCheckoutSession' ? canceled : orders > 0;
    if (happened) return { kind: 'happened', answer: answerOf(200, 'read back') };
    return manner === 'reports' && atWork.size > 0 ? { kind: 'in_progress' } : { kind: 'not_happened' };
  };

  return {
    openedIn,
    orders: (sessionId) => sessionOf({ sessionId }).orders,
    work: (call, asker) => ({
      attempt: ({ backendKey }) => attempt(call, backendKey, asker),
      readBack: call.operation === 'createCheckoutSession' ? undefined : () => read(call, asker),
    }),
  };
}

function openedIn({ body }: FinalAnswer): string {
  const { what } = JSON.parse(Buffer.from(body).toString()) as { readonly what: string };
  return what.replace('opened ', 'new_');
}

/** How a call ended for its caller. `gone`: the gateway died; `left`: the caller did not wait. */
export type CallEnd = KeyedEnd | { readonly kind: 'gone' | 'left' };

/** Gateways on one store. A dead one is replaced at once. */
export interface Gateways {
  /** `patienceMs`: how long the caller waits; the gateway does not know it. */
  call(which: number, call: KeyedCall, patienceMs: number): Promise<CallEnd>;
  /** How often each end happened. */
  readonly tally: ReadonlyMap<string, number>;
}

export const DEPLOYMENT = 'merchant';

interface Running {
  readonly process: Process;
  readonly idempotency: ReturnType<typeof createIdempotency>;
}

export function openGateways(
  world: World,
  parts: { readonly store: Commits; readonly backend: SimBackend; readonly laws: Laws },
  manner: Manner,
): Gateways {
  const { store, backend, laws } = parts;
  const tally = new Map<string, number>();
  const running = new Map<number, Running>();
  let started = 0;
  const count = (what: string): void => void tally.set(what, (tally.get(what) ?? 0) + 1);
  const watch: ClaimWatch = {
    claimed: count,
    leaseExpired: () => count('lease expired'),
    unknown: (why) => count(why),
    fenced: () => count('fenced'),
    unstored() {
      count('unstored');
      laws.unstored();
    },
    unopened: () => laws.broken('an answer could not be opened'),
    foreign: () => count('foreign'),
  };

  const start = (): Running => {
    started += 1;
    const process = world.process(`gateway ${started}`);
    const claims = documentClaims(createTransact(world.line(process, store)));
    const time = {
      now: () => world.schedule.now,
      sleep: (ms: number) => world.reply(process, 'wakes', ms),
    };
    const parts = {
      claims: claims,
      settings: {
        ...SETTINGS,
        merchant: manner === 'settles' ? 'read-back-only' : 'derived-key',
      },
      deploymentId: DEPLOYMENT,
      time,
    } as const;
    const idempotency = createIdempotency({
      ...parts,
      sessions: createSessions({ ...parts, servesUnknown: false }),
      longestTimeoutMs: TIMEOUT_MS,
      watch,
    });
    return { process, idempotency };
  };
  const alive = (which: number): Running => {
    const found = running.get(which);
    if (found?.process.alive) return found;
    const fresh = start();
    running.set(which, fresh);
    return fresh;
  };

  return {
    tally,
    call(which, call, patienceMs) {
      const { process, idempotency } = alive(which);
      return new Promise((resolve) => {
        const gone = (): void => world.later(50, 'connection ends', () => resolve({ kind: 'gone' }));
        process.atEnd.add(gone);
        if (Number.isFinite(patienceMs)) world.later(patienceMs, 'caller leaves', () => resolve({ kind: 'left' }));
        void idempotency.run(call, TIMEOUT_MS, backend.work(call, process)).then((end) => {
          process.atEnd.delete(gone);
          count(`ended ${end.kind}${end.kind === 'answered' ? ` ${end.from}` : ''}`);
          resolve(end);
        });
      });
    },
  };
}
