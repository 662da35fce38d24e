import type { Unknown } from '../../src/checkouts/claims.ts';
import type { Attempt, AttemptEnd, FinalAnswer, KeyedCall, ReadBack, Work } from '../../src/checkouts/idempotency.ts';

/**
 * What the backend does with one POST. `refusal`: the session does not allow it. `declined`: the
 * request itself is wrong. `lost`: its end never arrives, as if the gateway had died.
 */
export interface Turn {
  readonly acts: boolean;
  readonly ends: 'answer' | 'refusal' | 'declined' | 'not_executed' | 'lost' | { readonly unknown: Unknown };
  /** How long it takes, milliseconds. */
  readonly tookMs?: number;
  /** The session that a create makes; a new one unless given. */
  readonly opens?: string;
}

/**
 * What a reading of the session shows instead of the truth, and how long it takes, milliseconds.
 */
export interface Reading {
  readonly shows?: 'unreadable' | 'in_progress';
  readonly tookMs?: number;
}

/** A POST as it arrived. */
export interface Post extends Attempt {
  readonly operation: KeyedCall['operation'];
}

/** A backend that ignores keys: two POSTs make two orders. A read session shows the truth. */
export interface ScriptedBackend {
  readonly posts: readonly Post[];
  readonly reads: () => number;
  readonly orders: (sessionId: string) => number;
  /** What the next POSTs come to; afterwards all of them are done and answered. */
  next(...turns: readonly Turn[]): void;
  nextReads(...readings: readonly Reading[]): void;
  work(call: KeyedCall): Work<string>;
}

/** `pass`: lets time go by, milliseconds. */
export function scriptedBackend(pass: (ms: number) => void): ScriptedBackend {
  const posts: Post[] = [];
  const turns: Turn[] = [];
  const readings: Reading[] = [];
  const orders = new Map<string, number>();
  const canceled = new Set<string>();
  let reads = 0;

  const act = ({ operation, sessionId = 'new' }: KeyedCall): void => {
    if (operation === 'completeCheckoutSession') orders.set(sessionId, (orders.get(sessionId) ?? 0) + 1);
    if (operation === 'cancelCheckoutSession') canceled.add(sessionId);
  };
  const attempt = async (call: KeyedCall, { backendKey, number }: Attempt): Promise<AttemptEnd<string>> => {
    posts.push({ operation: call.operation, backendKey, number });
    const { acts, ends, tookMs = 0, opens }: Turn = turns.shift() ?? { acts: true, ends: 'answer' };
    pass(tookMs);
    if (acts) act(call);
    if (ends === 'lost') return new Promise(() => undefined);
    if (ends === 'not_executed') return { kind: 'not_executed', failure: 'unreachable' };
    if (ends === 'refusal') return { kind: 'answer', answer: answerOf(409, { refused: posts.length }) };
    if (ends === 'declined') return { kind: 'answer', answer: answerOf(422, { declined: posts.length }) };
    if (ends !== 'answer') return { kind: 'unknown', why: ends.unknown, failure: `failed: ${ends.unknown}` };
    const answer = answerOf(200, { by: call.operation, post: posts.length });
    if (call.operation !== 'createCheckoutSession') return { kind: 'answer', answer };
    return { kind: 'answer', answer, opened: opens ?? `new_${posts.length}` };
  };
  const read = async ({ operation, sessionId = '' }: KeyedCall): Promise<ReadBack> => {
    reads += 1;
    const { shows, tookMs = 0 } = readings.shift() ?? {};
    pass(tookMs);
    if (shows !== undefined) return { kind: shows };
    const happened = operation === 'cancelCheckoutSession' ? canceled.has(sessionId) : orders.has(sessionId);
    return happened ? { kind: 'happened', answer: answerOf(200, { read: reads }) } : { kind: 'not_happened' };
  };
  return {
    posts,
    reads: () => reads,
    orders: (sessionId) => orders.get(sessionId) ?? 0,
    next: (...more) => void turns.push(...more),
    nextReads: (...more) => void readings.push(...more),
    work: (call) => ({
      attempt: (one) => attempt(call, one),
      readBack: /complete|cancel/.test(call.operation) ? () => read(call) : undefined,
    }),
  };
}

function answerOf(status: number, document: object): FinalAnswer {
  return { status, body: Buffer.from(JSON.stringify(document)) };
}
