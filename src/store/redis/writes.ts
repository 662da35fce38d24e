/** Gathers changes of payments, so that one script makes those of one turn of the event loop. */

import { StoreError } from '../port/store.ts';
import { parts } from './reply.ts';

/** Changes of one script, at most: some milliseconds of the server. */
const MOST = 32;
/** How long a change waits that no caller waits for, milliseconds. */
const LATER_MS = 10;

/** One change as change.lua takes it. `rest`: the arguments behind its plan. */
interface PaymentChange {
  readonly payment: string;
  readonly kept: string;
  readonly plan: object;
  readonly rest: readonly (string | Buffer)[];
}

interface Waiting extends Pick<PromiseWithResolvers<unknown>, 'resolve' | 'reject'> {
  readonly change: PaymentChange;
  /** Since when it waits for others, on the clock of `performance.now()`. */
  readonly since?: number;
}

/** `waitedMs`: whole milliseconds that it waited for others. It was true that much earlier. */
type GatheredChange = PaymentChange & { readonly waitedMs: number };

/**
 * Gathers changes that leave together. Each gets its own reply. `send` makes some changes by one
 * script, and resolves with a list of their replies.
 */
export function gatherWrites(send: (changes: readonly GatheredChange[]) => Promise<unknown>) {
  let waiting: Waiting[] = [];
  let timer: NodeJS.Timeout | undefined;
  let turn: NodeJS.Immediate | undefined;

  const flush = (): void => {
    clearTimeout(timer);
    clearImmediate(turn);
    timer = undefined;
    turn = undefined;
    const gathered = waiting;
    waiting = [];
    for (let at = 0; at < gathered.length; at += MOST) void sendSome(gathered.slice(at, at + MOST));
  };
  const sendSome = async (some: readonly Waiting[]): Promise<void> => {
    try {
      const now = performance.now();
      const gathered = some.map(({ change, since = now }) => ({ ...change, waitedMs: Math.floor(now - since) }));
      const replies = parts(await send(gathered));
      for (const [i, { resolve, reject }] of some.entries()) {
        const [kind, cause] = parts(replies[i]);
        if (kind === 'failed') reject(new StoreError(new Error(String(cause))));
        else resolve(replies[i]);
      }
    } catch (thrown) {
      for (const { reject } of some) reject(thrown);
    }
  };
  return {
    /**
     * `later`: waits for others up to 10 ms instead of for the end of this turn.
     * @throws StoreError
     */
    write(change: PaymentChange, later: boolean): Promise<unknown> {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      waiting.push({ change, resolve, reject, ...(later ? { since: performance.now() } : {}) });
      if (!later) turn ??= setImmediate(flush);
      else if (turn === undefined) timer ??= setTimeout(flush, LATER_MS);
      if (waiting.length >= MOST) flush();
      return promise;
    },
    /**
     * Sends what waits now if it changes this payment, or any where none is named, so that the
     * next command on this connection finds it: an answer that is sent is a replay for a proof that
     * comes again, however soon.
     */
    sendWaiting(payment?: string): void {
      if (waiting.some(({ change }) => payment === undefined || change.payment === payment)) flush();
    },
  };
}
