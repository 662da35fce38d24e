/** The book of receipts over documents: a receipt, and the lists and names that it is found by. */

import { type Entry, sameFields, scanPage } from '../events/page.ts';
import {
  boundedList,
  type Changes,
  type Commits,
  type Document,
  DROPPED_AT_ONCE,
  type EntryChange,
  parsed,
  type Read,
  type Transact,
  together,
} from '../store/port/commit.ts';
import type { StoreLimits } from '../store/port/settings.ts';
import {
  listsOf,
  type Receipt,
  type ReceiptBook,
  type ReceiptList,
  type ReceiptQuery,
  receiptIdsBefore,
  requestsOf,
  uncertaintyOf,
} from './receipt.ts';

const LISTS: readonly ReceiptList[] = ['done', 'owed', 'uncertain'];
/**
 * Each member begins with the id of a receipt, and all have one score: their order is that of time.
 * A member of `done` also has the receipt's other names, so a drop reads no receipt.
 */
const listKey = (list: ReceiptList): string => `rcpt:${list}`;
/**
 * Each member is the name of a request or a call, without spaces, and the id of a receipt that
 * belongs to it. Names that the gateway makes grow with time, so SQLite writes few pages for many.
 */
const NAMES = 'rcpt:names';
/** Sorts after every id. */
const PAST_EVERY_ID = '~';

const receiptKey = (id: string): string => `rcpt:${id}`;
/** The key of the document that holds the id of a payment's receipt. */
export const receiptOfKey = (replayKey: string): string => receiptKey(paymentName(replayKey));
/** The oldest and the newest id that were ever dropped, as JSON. */
const TRIMMED = 'rcpt:trimmed';

/** The changes that a write of the book adds to a commit. */
type BookChanges = Required<Pick<Changes, 'documents' | 'entries'>>;

/** Makes the changes of the book for a decision of `transact`. */
export interface BookWriter {
  /**
   * Writes a receipt. It replaces the one of the same id, and another one of its payment: a receipt
   * that was rebuilt from the chain gives way to the gateway's own. `before`: the stored receipt of
   * this id, where it is known.
   */
  put(read: Read, receipt: Receipt, before?: Receipt): BookChanges;
  drop(read: Read, id: string): BookChanges;
  /** Counts a delivered receipt that was written. */
  delivered(): void;
}

interface Book extends ReceiptBook {
  readonly writer: BookWriter;
  /** Drops some receipts over the bounds. True: there may be more. */
  tidy(): Promise<boolean>;
}

export function documentBook(store: Commits, transact: Transact, limits: StoreLimits): Book {
  const { receiptsMaxLength, receiptsMaxAgeMs } = limits;
  const trimmed = { length: 0, age: 0 };

  /** Drops delivered receipts, oldest first, and remembers how far the book reaches. */
  const dropAll = async (members: readonly string[]): Promise<number> => {
    const [oldest, newest] = [members[0], members.at(-1)];
    if (oldest === undefined || newest === undefined) return 0;
    const { documents, entries } = together(members.map(dropOf));
    const [from, to] = [idIn(oldest), idIn(newest)];
    return transact(
      [receiptKey(from), TRIMMED],
      (read) => {
        const range = rangeIn(read(TRIMMED)) ?? { from, to };
        const reach = { from: from < range.from ? from : range.from, to: to > range.to ? to : range.to };
        // Another process may have dropped them meanwhile.
        const answer = read(receiptKey(from)) === undefined ? 0 : members.length;
        return {
          answer,
          changes: { documents: [...documents, { key: TRIMMED, value: JSON.stringify(reach) }], entries },
        };
      },
      'reads',
    );
  };
  const done = boundedList(store, listKey('done'), receiptsMaxLength, 'member', async (members) => {
    const dropped = await dropAll(members);
    trimmed.length += dropped;
    return dropped;
  });
  const write = (receipts: readonly Receipt[], onlyNew: boolean): Promise<readonly string[]> => {
    const keys = receipts.flatMap(({ id, payment }) => [
      receiptKey(id),
      ...(payment ? [receiptOfKey(payment.replayKey)] : []),
    ]);
    return transact(keys, (read) => {
      const isKnown = ({ id, payment }: Receipt): boolean =>
        read(receiptKey(id)) !== undefined ||
        (payment !== undefined && read(receiptOfKey(payment.replayKey)) !== undefined);
      const written = onlyNew ? receipts.filter((receipt) => !isKnown(receipt)) : receipts;
      const answer = written.map(({ id }) => id);
      return written.length === 0
        ? { answer }
        : { answer, changes: together(written.map((receipt) => putChanges(read, receipt, undefined))) };
    });
  };
  const older = (query: ReceiptQuery) => {
    const idsOlder = idsIn(store, query);
    return async (than: string | undefined, count: number): Promise<readonly Entry<Receipt>[]> => {
      const ids = await idsOlder(than, count);
      const found = await store.read(ids.map(receiptKey));
      return ids.map((id) => ({ id, item: receiptIn(found.get(receiptKey(id))) }));
    };
  };
  return {
    writer: { put: putChanges, drop: dropChanges, delivered: () => void done.added(1) },
    async write(receipts) {
      await write(receipts, false);
      await done.added(receipts.length);
    },
    add: (receipts) => write(receipts, true),
    async page(query) {
      // Index entries match, but for names that an earlier version of a receipt had.
      const { resourceId, limit, cursor } = query;
      const scan = { limit, cursor, matches: matching(query), indexed: resourceId === undefined };
      const { items, next } = await scanPage(scan, older(query));
      return { receipts: items, ...(next === undefined ? {} : { nextCursor: next }) };
    },
    async counts() {
      const [done = 0, owed = 0, uncertain = 0] = await Promise.all(LISTS.map((list) => store.size(listKey(list))));
      return { done, owed, uncertain };
    },
    trimmed: () => ({ ...trimmed }),
    async trimmedRange() {
      return rangeIn((await store.read([TRIMMED])).get(TRIMMED));
    },
    async tidy() {
      const over = await done.trim();
      if (receiptsMaxAgeMs === undefined) return over === DROPPED_AT_ONCE;
      const below = receiptIdsBefore(store.now() - receiptsMaxAgeMs);
      const old = await store.members(listKey('done'), { by: 'member', below, limit: DROPPED_AT_ONCE });
      trimmed.age += await dropAll(old);
      return over === DROPPED_AT_ONCE || old.length === DROPPED_AT_ONCE;
    },
  };
}

const requestName = (requestId: string): string => `request:${requestId}`;
const callName = (callId: string): string => `call:${callId}`;
const paymentName = (replayKey: string): string => `of:${replayKey}`;

/** The names that find a receipt beside its lists. */
function namesOf(receipt: Receipt): readonly string[] {
  const { callId } = receipt.metadata ?? {};
  const names = requestsOf(receipt).map(requestName);
  return callId === undefined ? names : [...names, callName(callId)];
}

/** The entries that find a receipt. */
function entriesOf(receipt: Receipt): readonly EntryChange[] {
  const { id, payment } = receipt;
  const names = namesOf(receipt);
  const dropped = [id, ...names, ...(payment === undefined ? [] : [paymentName(payment.replayKey)])].join(' ');
  return [
    ...listsOf(receipt).map((list) => ({ list: listKey(list), member: list === 'done' ? dropped : id, score: 0 })),
    ...names.map((name) => ({ list: NAMES, member: `${name} ${id}`, score: 0 })),
  ];
}

/** The entries of a damaged receipt, as far as they are known. */
function entriesOfDamaged(id: string): readonly EntryChange[] {
  return LISTS.map((list) => ({ list: listKey(list), member: id }));
}

/** The change that takes an entry off its list. */
function removed({ list, member }: EntryChange): EntryChange {
  return { list, member };
}

/** The entries that are not among others. */
function without(entries: readonly EntryChange[], others: readonly EntryChange[]): readonly EntryChange[] {
  return entries.filter(({ list, member }) => !others.some((other) => other.list === list && other.member === member));
}

/** Drops a delivered receipt, by its member on the list alone. */
function dropOf(member: string): BookChanges {
  const [id = '', ...names] = member.split(' ');
  const documents = [{ key: receiptKey(id), value: null }];
  const entries: EntryChange[] = [{ list: listKey('done'), member }];
  for (const name of names)
    if (name.startsWith(paymentName(''))) documents.push({ key: receiptKey(name), value: null });
    else entries.push({ list: NAMES, member: `${name} ${id}` });
  return { documents, entries };
}

/** The id that a member begins with. */
function idIn(member: string): string {
  const end = member.indexOf(' ');
  return end < 0 ? member : member.slice(0, end);
}

function putChanges(read: Read, receipt: Receipt, before: Receipt | undefined): BookChanges {
  const { id, payment } = receipt;
  const documents: Changes['documents'][number][] = [{ key: receiptKey(id), value: JSON.stringify(receipt) }];
  const ofKey = before === undefined && payment !== undefined ? receiptOfKey(payment.replayKey) : undefined;
  const other = ofKey === undefined ? undefined : read(ofKey)?.value;
  const isNew = ofKey !== undefined && other === undefined;
  if (ofKey !== undefined && other !== id) documents.push({ key: ofKey, value: id });
  const document = before === undefined && !isNew ? read(receiptKey(id)) : undefined;
  const known = before ?? receiptIn(document);
  const isDamaged = document !== undefined && known === undefined;
  const [stood, stands] = [known === undefined ? [] : entriesOf(known), entriesOf(receipt)];
  const gone = without(isDamaged ? entriesOfDamaged(id) : stood, stands);
  const entries = [...gone.map(removed), ...without(stands, stood)];
  const own = { documents, entries };
  return other === undefined || other === id ? own : together([own, dropChanges(read, other, id)]);
}

/** `by`: the receipt that takes its place as the one of its payment. */
function dropChanges(read: Read, id: string, by?: string): BookChanges {
  const receipt = receiptIn(read(receiptKey(id)));
  const replayKey = receipt?.payment?.replayKey;
  const documents = [
    { key: receiptKey(id), value: null },
    ...(replayKey === undefined || by !== undefined ? [] : [{ key: receiptOfKey(replayKey), value: null }]),
  ];
  const stood = receipt === undefined ? entriesOfDamaged(id) : entriesOf(receipt);
  const entries = stood.map(removed);
  return { documents, entries };
}

/** Reads the ids of the receipts that a query is searched among, from the list that has fewest. */
function idsIn(store: Commits, query: ReceiptQuery) {
  const { payment, callId, requestId, uncertain, delivered } = query;
  const among = (list: string, name: string) => async (than: string | undefined, limit: number) => {
    const bounds = { ...(name === '' ? {} : { above: name }), below: name + (than ?? PAST_EVERY_ID) };
    const members = await store.members(list, { by: 'member', ...bounds, latest: true, limit });
    return members.map((member) => idIn(member.slice(name.length)));
  };
  if (payment !== undefined)
    return async (than: string | undefined) => {
      const id = (await store.read([receiptOfKey(payment)])).get(receiptOfKey(payment))?.value;
      return id === undefined || (than !== undefined && id >= than) ? [] : [id];
    };
  if (callId !== undefined) return among(NAMES, `${callName(callId)} `);
  if (requestId !== undefined) return among(NAMES, `${requestName(requestId)} `);
  if (uncertain !== undefined) return among(listKey('uncertain'), '');
  if (delivered !== undefined) return among(listKey(delivered ? 'done' : 'owed'), '');
  const both = [among(listKey('done'), ''), among(listKey('owed'), '')];
  return async (than: string | undefined, limit: number) => {
    const found = await Promise.all(both.map((older) => older(than, limit)));
    return [...new Set(found.flat())].toSorted().reverse().slice(0, limit);
  };
}

/** Each receipt is compared with the query again: a list may have changed since it was read. */
function matching(query: ReceiptQuery): (receipt: Receipt) => boolean {
  const { requestId, callId, payment, resourceId, delivered, uncertain } = query;
  const same = sameFields<Receipt>({ resourceId, delivered });
  return (receipt) =>
    (same?.(receipt) ?? true) &&
    (requestId === undefined || requestsOf(receipt).includes(requestId)) &&
    (payment === undefined || receipt.payment?.replayKey === payment) &&
    (callId === undefined || receipt.metadata?.callId === callId) &&
    (uncertain === undefined || uncertaintyOf(receipt) === uncertain);
}

/** Undefined for none and for a damaged one, so that it does not close the whole book. */
function receiptIn(document: Document | undefined): Receipt | undefined {
  try {
    return document && (JSON.parse(document.value) as Receipt);
  } catch {
    return undefined;
  }
}

function rangeIn(document: Document | undefined): { readonly from: string; readonly to: string } | undefined {
  return parsed(TRIMMED, document);
}
