/**
 * Reads what is new at the head of a feed that is paged newest first.
 *
 * A page is taken whole: a receipt that another process wrote a little late lies a few places below the newest. What is on no page
 * that had a known entry is older than anything known, so there the reading ends.
 *
 * @template {{ readonly id: string }} T
 * @typedef {{ readonly items: readonly T[], readonly next?: string | undefined }} Page
 */

/**
 * @template {{ readonly id: string }} T
 * @typedef {object} Caught
 * @property {readonly T[]} items Newest first, with those that were known already: they may have changed.
 * @property {string | undefined} next Where to read on; undefined at the end of the feed.
 * @property {boolean} joined Whether nothing can lie between these and what was known.
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
 * A cursor that begins with this very receipt: the id that sorts next after it (ids end in twelve hexadecimal digits).
 *
 * @param {string} id
 */
export function cursorAt(id) {
  const tail = (Number.parseInt(id.slice(-12), 16) + 1).toString(16).padStart(12, '0');
  return `${id.slice(0, -12)}${tail}`;
}
