/** What the page knows of one gateway, and how it learns more. */

import { createCalls } from './calls.js';
import { catchUp, cursorAt } from './feed.js';
import { Refusal } from './gateway.js';
import { readHistory } from './history.js';
import { createReceipts, isUndelivered } from './receipts.js';

/**
 * @typedef {ReturnType<typeof import('./gateway.js').openGateway>} Gateway
 * @typedef {import('./gateway.js').Readiness} Readiness
 * @typedef {import('../../receipts/receipt.ts').Receipt} Receipt
 * @typedef {ReturnType<typeof createSession>} Session
 */

/** Entries of a page at the first look, and of older pages. */
const FIRST_PAGE = 500;
/** Entries of a page at every later look. */
const PAGE = 100;
/** Most pages of one look; entries beyond them are a gap. */
const MAX_PAGES = 10;
/** Between two readings of the undelivered, which the store has to search for, milliseconds. */
export const UNDELIVERED_EVERY_MS = 30_000;
/** The same after a delivery that may have closed one of them, milliseconds. */
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

  /** Undelivered receipts may be of any age: all are read, and those that left the list again. */
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
     * @param {import('./ranges.js').Range} range
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
