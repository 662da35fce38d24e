import type { Unknown } from '../../src/checkouts/claims.ts';
import type { AttemptEnd, FinalAnswer, KeyedCall, ReadBack, Work } from '../../src/checkouts/idempotency.ts';

/**
 * What a merchant does with one POST. `refusal`: the session stands in the way. `declined`: the
 * request itself does. `lost`: nobody ever hears how it ended, as if the gateway had died
 * meanwhile.
 */
export interface Turn {
  readonly acts: boolean;
  readonly says: 'answer' | 'refusal' | 'declined' | 'not_executed' | 'lost' | { readonly unknown: Unknown };
  /** How long it takes, milliseconds. */
  readonly tookMs?: number;
  /** The session that a create makes; a new one unless said. */
  readonly opens?: string;
}

/** What a POST came with. */
export interface Heard {
  readonly operation: KeyedCall['operation'];
  readonly backendKey: string;
  readonly number: number;
}

/**
 * A merchant that looks at no key: whoever asks twice gets two orders. Reading a session tells the
 * truth.
 */
export interface ScriptedMerchant {
  readonly heard: readonly Heard[];
  readonly reads: () => number;
  readonly orders: (sessionId: string) => number;
  /** What the next POSTs meet; afterwards all of them are done and answered. */
  next(...turns: readonly Turn[]): void;
  /**
   * What the next readings of a session say instead of the truth, and how long they take,
   * milliseconds.
   */
  nextReads(...reads: readonly { readonly says?: 'unreadable' | 'in_progress'; readonly tookMs?: number }[]): void;
  work(call: KeyedCall): Work<string>;
}

export const DONE: Turn = { acts: true, says: 'answer' };

/** `pass`: lets time go by, milliseconds. */
export function scriptedMerchant(pass: (ms: number) => void): ScriptedMerchant {
  const heard: Heard[] = [];
  const turns: Turn[] = [];
  const readings: { readonly says?: 'unreadable' | 'in_progress'; readonly tookMs?: number }[] = [];
  const orders = new Map<string, number>();
  const canceled = new Set<string>();
  let reads = 0;

  const act = ({ operation, sessionId = 'new' }: KeyedCall): void => {
    if (operation === 'completeCheckoutSession') orders.set(sessionId, (orders.get(sessionId) ?? 0) + 1);
    if (operation === 'cancelCheckoutSession') canceled.add(sessionId);
  };
  const attempt = async (call: KeyedCall, at: Heard): Promise<AttemptEnd<string>> => {
    heard.push(at);
    const { acts, says, tookMs = 0, opens } = turns.shift() ?? DONE;
    pass(tookMs);
    if (acts) act(call);
    if (says === 'lost') return new Promise(() => undefined);
    if (says === 'not_executed') return { kind: 'not_executed', failure: 'nobody there' };
    if (says === 'refusal') return { kind: 'answer', answer: answerOf(409, { refused: heard.length }) };
    if (says === 'declined') return { kind: 'answer', answer: answerOf(422, { declined: heard.length }) };
    if (says !== 'answer') return { kind: 'unknown', why: says.unknown, failure: `failed: ${says.unknown}` };
    const answer = answerOf(200, { by: call.operation, post: heard.length });
    if (call.operation !== 'createCheckoutSession') return { kind: 'answer', answer };
    return { kind: 'answer', answer, opened: opens ?? `new_${heard.length}` };
  };
  const read = async ({ operation, sessionId = '' }: KeyedCall): Promise<ReadBack> => {
    reads += 1;
    const { says, tookMs = 0 } = readings.shift() ?? {};
    pass(tookMs);
    if (says !== undefined) return { kind: says };
    const happened = operation === 'cancelCheckoutSession' ? canceled.has(sessionId) : orders.has(sessionId);
    return happened ? { kind: 'happened', answer: answerOf(200, { read: reads }) } : { kind: 'not_happened' };
  };
  return {
    heard,
    reads: () => reads,
    orders: (sessionId) => orders.get(sessionId) ?? 0,
    next: (...more) => void turns.push(...more),
    nextReads: (...more) => void readings.push(...more),
    work: (call) => ({
      attempt: ({ backendKey, number }) => attempt(call, { operation: call.operation, backendKey, number }),
      readBack: /complete|cancel/.test(call.operation) ? () => read(call) : undefined,
    }),
  };
}

function answerOf(status: number, document: object): FinalAnswer {
  return { status, body: Buffer.from(JSON.stringify(document)) };
}
