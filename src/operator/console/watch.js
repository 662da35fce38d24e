/** Looks at the gateway again and again while the page is visible. */

import { Refusal } from './gateway.js';

/**
 * @typedef {{ readonly kind: 'live', readonly at: number }
 *   | { readonly kind: 'hidden' }
 *   | { readonly kind: 'retrying', readonly refusal: Refusal, readonly at: number }
 *   | { readonly kind: 'ended', readonly refusal: Refusal }} WatchState `at`: of the last look, or
 *   of the next one when retrying, milliseconds.
 */

/** Between two looks, milliseconds. */
export const LOOK_EVERY_MS = 2_000;
/** Longest wait after failures, unless the gateway asks for a longer one, milliseconds. */
export const LONGEST_WAIT_MS = 30_000;
/** Longest wait that a gateway can ask for, milliseconds. */
export const LONGEST_RETRY_AFTER_MS = 300_000;

/**
 * @param {{
 *   readonly look: () => Promise<void>,
 *   readonly onState: (state: WatchState) => void,
 *   readonly visible?: () => boolean,
 * }} parts `look` rejects with a Refusal; after a final one the watch ends.
 */
export function createWatch({ look, onState, visible = () => true }) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let failures = 0;
  let looking = false;
  let ended = false;

  /** @param {number} ms */
  const again = (ms) => {
    clearTimeout(timer);
    timer = setTimeout(turn, ms);
  };

  const turn = async () => {
    if (looking || ended) return;
    if (!visible()) {
      onState({ kind: 'hidden' });
      return;
    }
    looking = true;
    clearTimeout(timer);
    try {
      await look();
      failures = 0;
      if (ended) return;
      onState({ kind: 'live', at: Date.now() });
      again(LOOK_EVERY_MS);
    } catch (thrown) {
      if (!ended) failed(thrown);
    } finally {
      looking = false;
    }
  };

  /** @param {unknown} thrown */
  const failed = (thrown) => {
    // Anything else is a bug of the page: it is logged, and the watch goes on.
    if (!(thrown instanceof Refusal)) console.error(thrown);
    const refusal = thrown instanceof Refusal ? thrown : new Refusal('strange');
    if (refusal.final) {
      ended = true;
      onState({ kind: 'ended', refusal });
      return;
    }
    failures += 1;
    const wait = waitAfter(failures, refusal.retryAfterS);
    onState({ kind: 'retrying', refusal, at: Date.now() + wait });
    again(wait);
  };

  return {
    /** Looks at once: at the beginning, when the page is visible again, or on request. */
    now: turn,
    end() {
      ended = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Twice as long after each failure, and at least as long as the gateway asked for.
 *
 * @param {number} failures In a row, from 1.
 * @param {number | undefined} retryAfterS
 */
export function waitAfter(failures, retryAfterS) {
  const own = Math.min(LOOK_EVERY_MS * 2 ** Math.min(failures - 1, 10), LONGEST_WAIT_MS);
  return Math.max(own, Math.min((retryAfterS ?? 0) * 1_000, LONGEST_RETRY_AFTER_MS));
}
