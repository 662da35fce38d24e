import { createBooks, isUndelivered } from './books.js';
import { createCalls } from './calls.js';
import { catchUp, cursorAt } from './feed.js';
import { Refusal } from './gateway.js';

/**
 * What the page knows of one gateway, and how it learns more.
 *
 * @typedef {ReturnType<typeof import('./gateway.js').openGateway>} Gateway
 * @typedef {import('./gateway.js').Readiness} Readiness
 * @typedef {import('../../receipts/receipt.ts').Receipt} Receipt
 * @typedef {ReturnType<typeof createSession>} Session
 */

/** Entries of a page when the feeds are read for the first time, or further back. */
const FIRST_PAGE = 500;
/** Entries of a page on every later look. */
const PAGE = 100;
/** Pages that one look follows; what is older than that is told as a gap. */
const MAX_PAGES = 10;
/** Between two readings of the undelivered, which cost the store a search, milliseconds. */
export const UNDELIVERED_EVERY_MS = 30_000;
/** The same after a delivery that may have closed one of them, milliseconds. */
const UNDELIVERED_SOON_MS = 4_000;
/** Between two readings of the merchant's name and resources, milliseconds. */
const NAMES_EVERY_MS = 60_000;
/** Receipts that left the list of the undelivered, read again at one look. */
const MAX_SETTLED_AT_ONCE = 20;

/** @param {Gateway} gateway */
export function createSession(gateway) {
  const calls = createCalls();
  /** The newest receipts, without a hole: what is added up. */
  const books = createBooks();
  /** The undelivered of any age. */
  const debts = createBooks();
  let first = true;
  let gap = false;
  let undeliveredAt = 0;
  let deliverySeen = false;
  let namesAt = 0;
  /** @type {string | undefined} */
  let older;
  const facts = {
    /** @type {Readiness | undefined} What the gateway said last. */
    readiness: undefined,
    /** Whether it said so when it was last asked: nobody knows what is ready behind a silence. */
    readinessHeard: false,
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
    const caught = await catchUp((cursor) => gateway.receipts(paged(limit, cursor)), books.knows, {
      pages: first ? 1 : MAX_PAGES,
    });
    if (first) older = caught.next;
    else gap ||= !caught.joined;
    books.add(caught.items);
    keepDebts(caught.items);
  };

  /** @param {readonly Receipt[]} receipts */
  const keepDebts = (receipts) => {
    debts.add(receipts.filter(isUndelivered));
    for (const receipt of receipts) if (!isUndelivered(receipt)) debts.forget(receipt.id);
  };

  /** The undelivered lie anywhere in the book, and change there: they are read as a whole, and what has left them one by one. */
  const readUndelivered = async () => {
    const wait = deliverySeen && debts.size() > 0 ? UNDELIVERED_SOON_MS : UNDELIVERED_EVERY_MS;
    if (undeliveredAt !== 0 && Date.now() - undeliveredAt < wait) return;
    const before = debts.all();
    const query = { limit: String(FIRST_PAGE), delivered: 'false' };
    const read = (/** @type {string | undefined} */ cursor) =>
      gateway.receipts(cursor === undefined ? query : { ...query, cursor });
    const { items, next } = await catchUp(read, () => false, { pages: MAX_PAGES });
    keepDebts(items);
    books.replace(items);
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
    books.replace(same);
    keepDebts(same);
    // Or the store has dropped it.
    if (same.length === 0) debts.forget(id);
  };

  const readNames = async () => {
    if (namesAt !== 0 && Date.now() - namesAt < NAMES_EVERY_MS) return;
    [facts.names, facts.merchant] = await Promise.all([gateway.names(), gateway.merchant()]);
    namesAt = Date.now();
  };

  const readReadiness = async () => {
    try {
      facts.readiness = await gateway.readiness();
      facts.readinessHeard = true;
    } catch (thrown) {
      facts.readinessHeard = false;
      throw thrown;
    }
  };

  return {
    calls,
    books,
    debts,
    facts,
    /** Whether older receipts can be read. */
    hasOlder: () => older !== undefined && !books.full(),
    /** Whether so much happened between two looks that receipts are missing in between. */
    hasGap: () => gap,
    /** One look at everything; what can be read is taken, then the first refusal is thrown. @throws Refusal */
    async look() {
      const events = readEvents();
      // Every question with a wrong token is a guess, and the gateway hears few of them: the others wait until the token was right.
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
    /** Reads the next older receipts. @throws Refusal */
    async readOlder() {
      if (older === undefined) return;
      const read = (/** @type {string | undefined} */ cursor) => gateway.receipts(paged(String(FIRST_PAGE), cursor));
      const { items, next } = await catchUp(read, () => false, { pages: 1, from: older });
      books.add(items);
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
