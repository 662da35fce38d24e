/**
 * Reads the new entries of a feed that is paged newest first.
 *
 * Pages are taken whole: a receipt that another process wrote a little late is a few entries below
 * the newest. Reading ends with the page that has a known entry.
 *
 * @template {{ readonly id: string }} T
 * @typedef {{ readonly items: readonly T[], readonly next?: string | undefined }} Page
 */

/**
 * @template {{ readonly id: string }} T
 * @typedef {object} Caught
 * @property {readonly T[]} items Newest first, with known ones, which may have changed.
 * @property {string | undefined} next Where to read on; undefined at the end of the feed.
 * @property {boolean} joined Whether no entry is missing between these and the known ones.
 */

/**
 * @template {{ readonly id: string }} T
 * @param {(cursor: string | undefined) => Promise<Page<T>>} read
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
