/**
 * The data of one gateway on the page, the reading of more, and the times of the next looks.
 *
 * @typedef {import('../../receipts/receipt.ts').Receipt} Receipt
 * @typedef {import('./gateway.js').Readiness} Readiness
 * @typedef {ReturnType<typeof import('./gateway.js').openGateway>} Gateway
 * @typedef {ReturnType<typeof createSession>} Session
 */

import { createCalls } from './calls.js';
import { Refusal } from './gateway.js';
import { readHistory } from './history.js';
import { createReceipts, isUndelivered } from './receipts.js';

/** Entries of a page at the first look, and of older pages. */
const FIRST_PAGE = 500;
/** Entries of a page at every later look. */
const PAGE = 100;
/** Most pages of one look; entries beyond them are a gap. */
const MAX_PAGES = 10;
/** Between two readings of the undelivered, which the store has to search for, milliseconds. */
export const UNDELIVERED_EVERY_MS = 30_000;
/** Between two such readings after a delivery that may have closed one, milliseconds. */
const UNDELIVERED_SOON_MS = 4_000;
/** Between two readings of the merchant's name and resources, milliseconds. */
const NAMES_EVERY_MS = 60_000;
/** Most receipts that left the list of the undelivered and are read again at one look. */
const MAX_SETTLED_AT_ONCE = 20;

/** @param {Gateway} gateway */
export function createSession(gateway) {
  const calls = createCalls();
  /** The newest receipts, without a gap: these are added up. */
  const receipts = createReceipts();
  /** The undelivered of any age. */
  const undelivered = createReceipts();
  let first = true;
  let gap = false;
  let undeliveredAt = 0;
  let deliverySeen = false;
  let namesAt = 0;
  /** @type {string | undefined} */
  let older;
  const facts = {
    /** @type {Readiness | undefined} The last answer. */
    readiness: undefined,
    /** Whether the last look got an answer: without one the readiness is not known. */
    readinessAnswered: false,
    merchant: { name: '', version: '' },
    /** @type {ReadonlyMap<string, string>} */
    names: new Map(),
  };

  const readEvents = async () => {
    const limit = String(first ? FIRST_PAGE : PAGE);
    const caught = await catchUp((cursor) => gateway.events(paged(limit, cursor)), calls.knows, {
      pages: first ? 1 : MAX_PAGES,
    });
    deliverySeen ||= caught.items.some(({ id, type }) => type === 'resource.delivered' && !calls.knows(id));
    calls.add(caught.items);
  };

  const readReceipts = async () => {
    const limit = String(first ? FIRST_PAGE : PAGE);
    const caught = await catchUp((cursor) => gateway.receipts(paged(limit, cursor)), receipts.knows, {
      pages: first ? 1 : MAX_PAGES,
    });
    if (first) older = caught.next;
    else gap ||= !caught.joined;
    receipts.add(caught.items);
    keepUndelivered(caught.items);
  };

  /** @param {readonly Receipt[]} found */
  const keepUndelivered = (found) => {
    undelivered.add(found.filter(isUndelivered));
    for (const receipt of found) if (!isUndelivered(receipt)) undelivered.forget(receipt.id);
  };

  /** Reads all undelivered receipts, of any age, and those that left the list since. */
  const readUndelivered = async () => {
    const wait = deliverySeen && undelivered.size() > 0 ? UNDELIVERED_SOON_MS : UNDELIVERED_EVERY_MS;
    if (undeliveredAt !== 0 && Date.now() - undeliveredAt < wait) return;
    const before = undelivered.all();
    const query = { limit: String(FIRST_PAGE), delivered: 'false' };
    const read = (/** @type {string | undefined} */ cursor) =>
      gateway.receipts(cursor === undefined ? query : { ...query, cursor });
    const { items, next } = await catchUp(read, () => false, { pages: MAX_PAGES });
    keepUndelivered(items);
    receipts.replace(items);
    const still = new Set(items.map(({ id }) => id));
    const left = before.filter(({ id }) => !still.has(id) && (next === undefined || id > next));
    for (const { id } of left.slice(0, MAX_SETTLED_AT_ONCE)) await readAgain(id);
    undeliveredAt = Date.now();
    deliverySeen = false;
  };

  /** @param {string} id */
  const readAgain = async (id) => {
    const { items } = await gateway.receipts({ limit: '1', cursor: cursorAt(id) });
    const same = items.filter((receipt) => receipt.id === id);
    receipts.replace(same);
    keepUndelivered(same);
    // The store has dropped it.
    if (same.length === 0) undelivered.forget(id);
  };

  const readNames = async () => {
    if (namesAt !== 0 && Date.now() - namesAt < NAMES_EVERY_MS) return;
    [facts.names, facts.merchant] = await Promise.all([gateway.names(), gateway.merchant()]);
    namesAt = Date.now();
  };

  const readReadiness = async () => {
    try {
      facts.readiness = await gateway.readiness();
      facts.readinessAnswered = true;
    } catch (thrown) {
      facts.readinessAnswered = false;
      throw thrown;
    }
  };

  return {
    calls,
    receipts,
    undelivered,
    facts,
    /** Whether older receipts can be read. */
    hasOlder: () => older !== undefined && !receipts.full(),
    /** Whether receipts are missing because too many came between two looks. */
    hasGap: () => gap,
    /** Reads everything; takes what can be read, then throws the first refusal. @throws Refusal */
    async look() {
      const events = readEvents();
      // Every request with a wrong token counts as a guess: the others wait until one was right.
      if (first)
        await events.catch((thrown) => {
          if (thrown instanceof Refusal && thrown.final) throw thrown;
        });
      const results = await Promise.allSettled([events, readReceipts(), readReadiness(), readNames()]);
      const refused = results.find(({ status }) => status === 'rejected');
      if (refused?.status === 'rejected') throw refused.reason;
      first = false;
      await readUndelivered();
    },
    /**
     * Reads a range back from now. Nothing of it is kept here.
     *
     * @param {import('./history.js').Range} range
     * @param {import('./history.js').Progress} progress
     */
    readHistory: (range, progress) => readHistory(gateway, range, { ...progress, now: Date.now() }),
    /** Reads the next older receipts. @throws Refusal */
    async readOlder() {
      if (older === undefined) return;
      const read = (/** @type {string | undefined} */ cursor) => gateway.receipts(paged(String(FIRST_PAGE), cursor));
      const { items, next } = await catchUp(read, () => false, { pages: 1, from: older });
      receipts.add(items);
      older = next;
    },
  };
}

/**
 * @param {string} limit
 * @param {string | undefined} cursor
 * @returns {Readonly<Record<string, string>>}
 */
function paged(limit, cursor) {
  return cursor === undefined ? { limit } : { limit, cursor };
}

/**
 * @template {{ readonly id: string }} T
 * @typedef {object} Caught
 * @property {readonly T[]} items Newest first, with known ones, which may have changed.
 * @property {string | undefined} next Where to read on; undefined at the end of the feed.
 * @property {boolean} joined Whether no entry is missing between these and the known ones.
 */

/**
 * Reads the new entries of a feed that is paged newest first. Pages are taken whole: a receipt that
 * another process wrote a little late is a few entries below the newest. Reading ends with the page
 * that has a known entry.
 *
 * @template {{ readonly id: string }} T
 * @param {(cursor: string | undefined) => Promise<import('./gateway.js').Page<T>>} read
 * @param {(id: string) => boolean} known
 * @param {{ readonly pages: number, readonly from?: string | undefined }} bounds
 * @returns {Promise<Caught<T>>}
 */
export async function catchUp(read, known, { pages, from }) {
  /** @type {T[]} */
  const items = [];
  let next = from;
  for (let page = 0; page < pages; page += 1) {
    const answer = await read(next);
    items.push(...answer.items);
    next = answer.next;
    if (next === undefined || answer.items.some(({ id }) => known(id))) return { items, next, joined: true };
  }
  return { items, next, joined: false };
}

/**
 * A cursor whose page begins with this receipt: the next id, which has the last 12 hex digits + 1.
 *
 * @param {string} id
 */
export function cursorAt(id) {
  const tail = (Number.parseInt(id.slice(-12), 16) + 1).toString(16).padStart(12, '0');
  return `${id.slice(0, -12)}${tail}`;
}

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
