import type { AttemptEnd, FinalAnswer, KeyedCall, ReadBack, Work } from '../../src/checkouts/idempotency.ts';
import type { Chance } from '../chaos/sim/chance.ts';
import type { Laws } from './laws.ts';
import { type Manner, TIMEOUT_MS } from './plan.ts';
import type { World } from './world.ts';

/** Longest that the machine waits for a session to be read, milliseconds. */
const READ_TIMEOUT_MS = 10_000;
/** How long after it was sent a call may take effect, milliseconds. */
const LATEST_MS: Readonly<Record<Manner, number>> = { reports: 24_900, settles: 45_000, deduplicates: 120_000 };

export interface SimBackend {
  /** The id of the session that an answer opens. */
  openedIn(answer: FinalAnswer): string;
  orders(sessionId: string): number;
  /** `asker`: the process that makes the call; its replies end with it. */
  work(call: KeyedCall, asker: Parameters<World['reply']>[0]): Work<string>;
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
  ): Promise<AttemptEnd<string>> => {
    if (!world.faultsOver && chance.happens(0.08)) {
      await world.reply(asker, 'refused connection', 2);
      return { kind: 'not_executed', failure: 'unreachable' };
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
    if (replyMs > TIMEOUT_MS) return { kind: 'unknown', why: 'timeout', failure: '504' };
    if (ends === 'answer' && answer !== undefined)
      return answer.status === 201 ? { kind: 'answer', answer, opened: openedIn(answer) } : { kind: 'answer', answer };
    return { kind: 'unknown', why: ends === 'reset' ? 'reset' : 'status', failure: '502' };
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
