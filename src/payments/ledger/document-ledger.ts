/**
 * The ledger of payments over documents: reads, lets the table decide, commits what it decided.
 * Also its sealed form, for stores that must not read what buyers send.
 */

import { type KeyRing, openText, sealText } from '../../crypto/seal.ts';
import { claimKeys, finishUses, openKeys, registerIn, reserveUses } from '../../mandates/register.ts';
import { type BookWriter, receiptOfKey } from '../../receipts/document-book.ts';
import type { Receipt } from '../../receipts/receipt.ts';
import {
  boundedList,
  type Changes,
  type Commits,
  type Decision,
  type Documents,
  type EntryChange,
  type How,
  type Read,
  type Stretch,
  type Transact,
  together,
} from '../../store/port/commit.ts';
import {
  type Advance,
  type Advanced,
  type Keeping,
  type KeptAnswer,
  MAX_STORED_ANSWER_BYTES,
  type Note,
  type PaymentLedger,
  type PaymentRecord,
  type PaymentState,
  type Refusal,
  type Reservation,
  SEALED_ANSWER,
} from './ledger.ts';
import { ANSWER_KEPT } from './payment-receipt.ts';
import {
  admitted,
  advance,
  assertKeeping,
  assertRecord,
  claimOf,
  discard,
  ENDS_USES,
  expiresAt,
  FORGOTTEN,
  LedgerCorruption,
  note,
  type Outcome,
  OVER_STATES,
  renew,
  reserve,
} from './table.ts';

/** Refused payments on the list of unpaid work, at most. */
export const MOST_UNPAID = 1_000;

/** Payments that are looked at one by one; of more than these only the sum is known. */
const CENSUS_LIMIT = 1_000;

/** The open payments of a merchant, over all gateways. */
export interface PaymentCensus {
  /** Payments that have not ended. */
  readonly open: number;
  /** Of the first 1,000: settlements whose outcome no attempt is asking for now. */
  readonly uncertain: number;
  /** Of the first 1,000: paid, and neither delivered nor kept for the buyer. */
  readonly undelivered: number;
}

/** The work list: payments by `dueAt`. */
const OPEN = 'open';
/** Refused payments whose backend had answered, by their last change. */
const UNPAID = 'unpaid';
/** Remembered refusals by their end. */
const REFUSED = 'refused';

/** Key of the part of a payment that changes. */
const payKey = (payId: string): string => `pay:${payId}`;
/** Key of a payment's proof and backend request; they never change until they are deleted. */
const purchaseKey = (payId: string): string => `buy:${payId}`;
const keptKey = (payId: string): string => `res:${payId}`;
const refusalKey = (proof: string): string => `refused:${proof}`;
const tokenKey = (id: string): string => `tok:${id}`;

/**
 * States that a replica must have. Money moves between `settling` and `settled`: a failover that
 * forgets one of them forgets a payment. A failover that forgets `withdrawn` settles a payment
 * whose buyer was told that nothing was taken.
 */
const REPLICATED: ReadonlySet<PaymentState> = new Set(['settling', 'settled', 'withdrawn']);

/** Separates the head of a kept answer, JSON on one line, from its body. */
const SEPARATOR = Buffer.from('\n');

interface DocumentLedger extends PaymentLedger {
  census(): Promise<PaymentCensus>;
  /** Drops the entries beyond the bounds of the lists. @throws StoreError */
  tidy(): Promise<void>;
}

export function documentLedger(store: Commits, transact: Transact, book: BookWriter): DocumentLedger {
  const unpaid = boundedList(store, UNPAID, MOST_UNPAID, 'score', async (members) => {
    await store.commit({ documents: [], entries: members.map((member) => ({ list: UNPAID, member })) }, 'now');
    return members.length;
  });
  const refusals = boundedList(store, REFUSED, MAX_REFUSALS, 'score', async (members) => {
    const documents = members.map((proof) => ({ key: refusalKey(proof), value: null }));
    await store.commit({ documents, entries: members.map((member) => ({ list: REFUSED, member })) }, 'now');
    return members.length;
  });

  /** A change of a record that exists, with everything that becomes true with it. */
  const write = async (
    command: Advance | Note,
    change: (before: PaymentRecord | undefined, now: number) => Outcome<Advanced>,
  ): Promise<Advanced> => {
    const { payId, seen, receipt, keeping, events } = command;
    const { to, dropReceipt } = 'to' in command ? command : {};
    const how = howOf(command);
    const kept = keeping && keptChange(payId, keeping);
    const isFirstReceipt = receipt !== undefined && seen?.settledAt === undefined;
    const guessed = [
      payKey(payId),
      ...(isFirstReceipt ? [receiptOfKey(payId)] : []),
      ...(to === undefined || ENDS_USES[to] === undefined ? [] : openKeysOf(seen)),
    ];
    const answer = await transact(guessed, (read, now): Decision<Advanced> => {
      const before = recordIn(read, payId, seen);
      const { answer, record, changed } = change(before, now);
      if (record === undefined || !changed)
        // A repeated command writes its record again: a replica may not have it yet.
        return how === 'replicated' && record !== undefined && answer.kind === 'done'
          ? { answer, changes: { ...recordChanges(record, record, madeAt(read, payId)), how } }
          : { answer };
      const made = madeAt(read, payId);
      const parts: Partial<Changes>[] = [
        recordChanges(before, record, { record, receipt: receipt ?? made?.receipt }),
        { documents: endOfUses(read, before, record, now) },
      ];
      if (receipt !== undefined) parts.push(book.put(read, receipt, made?.receipt));
      if (dropReceipt !== undefined) parts.push(book.drop(read, dropReceipt));
      if (kept !== undefined) parts.push({ documents: [kept(now)] });
      return { answer, changes: { ...together(parts), events: events ?? [], how } };
    });
    if (receipt?.delivered === true) book.delivered();
    if (to === 'refused') void unpaid.added(1);
    return answer;
  };

  return {
    async reserve(command) {
      const { terms, token, proof, verified } = command;
      const { payId, mandate } = terms;
      const shown = token?.kind === 'issued' ? tokenKey(token.id) : undefined;
      const guessed = [
        ...[payKey(payId), purchaseKey(payId)],
        ...(proof === undefined ? [] : [refusalKey(proof)]),
        ...(shown === undefined ? [] : [shown]),
        ...(mandate === undefined ? [] : claimKeys(claimOf(mandate))),
      ];
      return transact(guessed, (read, now): Decision<Reservation> => {
        const before = recordIn(read, payId);
        const shownFor = shown === undefined ? undefined : read(shown)?.value;
        const register = registerIn(read);
        const outcome = reserve(before, command, now, shownFor);
        // Read only for a new record: the commit guards each document that was read.
        const refused = before === undefined && proof !== undefined ? read(refusalKey(proof))?.value : undefined;
        const { answer, record, changed } = admitted(outcome, before, refused, (claim) =>
          reserveUses(register, claim, now),
        );
        // An attempt that takes over an uncertain settlement may send it: a replica must have the
        // record as `settling` first, also when another attempt wrote that.
        const isSettling = answer.kind === 'granted' && answer.record.state === 'settling';
        const documents = [...register.documents()];
        if (record === undefined || !(changed || isSettling))
          return { answer, ...(documents.length === 0 ? {} : { changes: { documents } }) };
        const isGranted = answer.kind === 'granted';
        if (isGranted && token?.kind === 'issued' && shownFor === undefined)
          documents.push({ key: tokenKey(token.id), value: payId, endMs: now + token.forMs });
        return {
          answer,
          changes: {
            ...together([recordChanges(before, record, { ...madeAt(read, payId), record }), { documents }]),
            // A take-over rests on a lease that has ended.
            ...(changed && isGranted && before !== undefined ? { notBefore: before.leaseUntil } : {}),
            ...(isSettling && before === undefined ? { events: verified?.events ?? [] } : {}),
            how: isSettling ? 'replicated' : 'now',
          },
        };
      });
    },
    advance: (command) => write(command, (before, now) => advance(before, command, now)),
    note: (command) => write(command, (before, now) => note(before, command, now)),
    renew: (claim, leaseMs) =>
      transact([payKey(claim.payId)], (read, now) => {
        const before = recordIn(read, claim.payId, FORGOTTEN);
        const { answer, record, changed } = renew(before, { ...claim, leaseMs }, now);
        if (!changed || record === undefined) return { answer };
        const made = madeAt(read, claim.payId);
        // A record that was read without its purchase is not remembered.
        return { answer, changes: recordChanges(before, record, made && { ...made, record }) };
      }),
    async discard(holder, events, refusal) {
      const { payId, seen } = holder;
      const refused = refusal === undefined ? [] : [refusalKey(refusal.proof)];
      const answer = await transact([payKey(payId), ...refused, ...openKeysOf(seen)], (read, now) => {
        const before = recordIn(read, payId, seen);
        const { answer, changed } = discard(before, holder);
        const parts: Partial<Changes>[] = [];
        if (refusal !== undefined && answer.kind === 'gone') parts.push(refusalChanges(read, refusal, now));
        if (changed)
          parts.push({
            documents: [
              ...[payKey(payId), purchaseKey(payId)].map((key) => ({ key, value: null })),
              ...endOfUses(read, before, undefined, now),
            ],
            entries: [{ list: OPEN, member: payId }],
            events,
          });
        return parts.length === 0
          ? { answer }
          : { answer, changes: { ...together(parts), events: changed ? events : [] } };
      });
      if (refusal !== undefined) void refusals.added(1);
      return answer;
    },
    async read(payId) {
      const found = await store.read([payKey(payId), purchaseKey(payId)]);
      return recordIn((key) => found.get(key), payId);
    },
    async kept(payId) {
      const bytes = await store.bytes(keptKey(payId));
      return bytes && keptFrom(keptKey(payId), Buffer.from(bytes));
    },
    unpaid: (limit) =>
      recordsOf(
        store,
        UNPAID,
        Math.min(limit, MOST_UNPAID),
        { by: 'score', latest: true },
        ({ state }) => state === 'refused',
      ),
    due(limit, withinMs = 0) {
      const below = store.now() + withinMs;
      // Between the two reads an attempt may have begun to work on it.
      return recordsOf(store, OPEN, limit, { by: 'score', below }, ({ dueAt }) => dueAt <= below);
    },
    async census() {
      const listed = store.members(OPEN, { by: 'score', limit: CENSUS_LIMIT });
      const [open, ids] = await Promise.all([store.size(OPEN), listed]);
      const found = await store.read(ids.map(payKey));
      const counted = ids.flatMap((payId) => {
        const record = readable(found, payId, FORGOTTEN);
        return typeof record === 'object' ? record : [];
      });
      return { open, ...countOpen(counted, store.now()) };
    },
    async tidy() {
      await Promise.all([unpaid.trim(), refusals.trim()]);
    },
  };
}

/** The record that this process wrote into a document, kept beside its text. */
interface Made {
  readonly record: PaymentRecord;
  /** Its receipt, where this process wrote that. */
  readonly receipt?: Receipt | undefined;
}

type Purchase = Pick<PaymentRecord, 'proof' | 'backendRequest'>;

function madeAt(read: Read, payId: string): Made | undefined {
  return read(payKey(payId))?.made as Made | undefined;
}

/** `known`: the record's purchase, or values in its place. @throws LedgerCorruption */
function recordIn(read: Read, payId: string, known?: Purchase): PaymentRecord | undefined {
  const document = read(payKey(payId));
  if (document === undefined) return undefined;
  const made = madeAt(read, payId);
  if (made !== undefined) return made.record;
  return named(payKey(payId), () => {
    const held = parsed(document.value) as Omit<PaymentRecord, keyof Purchase>;
    const stored = (): Partial<Purchase> => {
      const purchase = read(purchaseKey(payId));
      return purchase === undefined ? FORGOTTEN : (parsed(purchase.value) as Purchase);
    };
    const { proof, backendRequest } = OVER_STATES.includes(held.state) ? FORGOTTEN : (known ?? stored());
    return assertRecord({ ...held, proof, backendRequest });
  });
}

/** Writes a record, and what follows from it alone: its end, and the lists that it stands on. */
function recordChanges(
  before: PaymentRecord | undefined,
  record: PaymentRecord,
  made: Made | undefined,
): Pick<Changes, 'documents' | 'entries'> {
  const { payId, proof, backendRequest } = record;
  const value = JSON.stringify({ ...record, proof: undefined, backendRequest: undefined });
  const isOver = OVER_STATES.includes(record.state);
  const endMs = expiresAt(record);
  const key = purchaseKey(payId);
  const documents: Changes['documents'][number][] = [
    { key: payKey(payId), value, endMs, made: isOver ? undefined : made },
  ];
  if (isOver) documents.push({ key, value: null });
  else if (before === undefined) documents.push({ key, value: JSON.stringify({ proof, backendRequest }), endMs });
  else if (expiresAt(before) !== endMs) documents.push({ key, endMs });
  const { dueAt, state, answered, changedAt } = record;
  const entries: EntryChange[] = [];
  if (dueAt !== before?.dueAt) entries.push({ list: OPEN, member: payId, ...(dueAt === 0 ? {} : { score: dueAt }) });
  if (state === 'refused' && answered !== undefined) entries.push({ list: UNPAID, member: payId, score: changedAt });
  return { documents, entries };
}

/** The way of a commit: a delivery with a mark in the store may be written a little later. */
function howOf(command: Advance | Note): How {
  if (!('to' in command)) return 'now';
  if (REPLICATED.has(command.to)) return 'replicated';
  // A process that dies before this write leaves the state of one that died before the last byte.
  return command.to === 'delivered' && command.seen?.sending === 'begun' ? 'later' : 'now';
}

function openKeysOf(seen: PaymentRecord | undefined): readonly string[] {
  return seen?.mandate === undefined ? [] : openKeys(claimOf(seen.mandate));
}

/** Ends the uses of a record's mandate; those of a deleted record, a reservation, are released. */
function endOfUses(
  read: Read,
  before: PaymentRecord | undefined,
  after: PaymentRecord | undefined,
  now: number,
): Changes['documents'] {
  if (before?.mandate === undefined || before.state === after?.state) return [];
  const how = after === undefined ? 'release' : ENDS_USES[after.state];
  if (how === undefined) return [];
  const register = registerIn(read);
  finishUses(register, claimOf(before.mandate), how, now);
  return register.documents();
}

/** Remembers a refusal, unless one of this proof is remembered already. */
function refusalChanges(read: Read, refusal: Refusal, now: number): Partial<Changes> {
  const key = refusalKey(refusal.proof);
  const endMs = Math.min(refusal.until, now + refusal.atMostMs);
  if (endMs <= now || read(key) !== undefined) return {};
  return {
    documents: [{ key, value: refusal.reason, endMs }],
    entries: [{ list: REFUSED, member: refusal.proof, score: endMs }],
  };
}

/** @throws RangeError a bug of the caller */
function keptChange(payId: string, keeping: Keeping): (now: number) => Changes['documents'][number] {
  assertKeeping(keeping);
  const key = keptKey(payId);
  const { answer, forMs } = keeping;
  if (forMs === 0) return () => ({ key, value: null });
  // Without a new answer, the kept one stays for `forMs`.
  if (answer === undefined) return (now) => ({ key, endMs: now + forMs });
  const { status, headers, body } = answer;
  const value = Buffer.concat([Buffer.from(JSON.stringify({ status, headers })), SEPARATOR, body]);
  return (now) => ({ key, value, endMs: now + forMs });
}

/** @throws LedgerCorruption */
function keptFrom(key: string, bytes: Buffer): KeptAnswer {
  return named(key, () => {
    const end = bytes.indexOf(SEPARATOR);
    if (end < 0) throw new LedgerCorruption('the kept answer has no head');
    const head = parsed(bytes.toString('utf8', 0, end)) as Pick<KeptAnswer, 'status' | 'headers'>;
    return { ...head, body: new Uint8Array(bytes.subarray(end + SEPARATOR.length)) };
  });
}

/**
 * Reads the records of a list, in its order, until there are enough. Damaged ones are skipped, so
 * that they do not hide all others; `read` throws for them. Entries whose records have ended are
 * forgotten.
 */
async function recordsOf(
  store: Commits,
  list: string,
  limit: number,
  stretch: Omit<Stretch, 'limit' | 'offset'>,
  isMeant: (record: PaymentRecord) => boolean,
): Promise<readonly PaymentRecord[]> {
  const records = new Map<string, PaymentRecord>();
  for (let offset = 0; records.size < limit; ) {
    const ids = await store.members(list, { ...stretch, offset, limit });
    const found = await store.read(ids.flatMap((payId) => [payKey(payId), purchaseKey(payId)]));
    for (const payId of ids) {
      const record = readable(found, payId);
      if (record === undefined) await forget(store, list, payId);
      else offset += 1;
      if (typeof record === 'object' && isMeant(record) && records.size < limit) records.set(payId, record);
    }
    if (ids.length < limit) break;
  }
  return [...records.values()];
}

function readable(found: Documents, payId: string, known?: Purchase): PaymentRecord | 'damaged' | undefined {
  try {
    return recordIn((key) => found.get(key), payId, known);
  } catch (thrown) {
    if (thrown instanceof LedgerCorruption) return 'damaged';
    throw thrown;
  }
}

/** Takes a payment off a list, unless it was reserved again meanwhile. */
async function forget(store: Commits, list: string, payId: string): Promise<void> {
  const guard = { key: payKey(payId), expect: null };
  await store.commit({ documents: [guard], entries: [{ list, member: payId }] }, 'now');
}

/** Adds the document's key to the error about a broken rule. */
function named<Made>(key: string, make: () => Made): Made {
  try {
    return make();
  } catch (thrown) {
    throw thrown instanceof LedgerCorruption ? new LedgerCorruption(thrown.rule, key) : thrown;
  }
}

/** @throws LedgerCorruption */
function parsed(json: string): object {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new LedgerCorruption('it is no JSON');
  }
  if (typeof value !== 'object' || value === null) throw new LedgerCorruption('it is no object');
  return value;
}

/** Most refusals that are remembered, 120 bytes each; the one that ends first goes. */
const MAX_REFUSALS = 20_000;

/** An open payment as it is counted. */
interface OpenPayment {
  readonly state: PaymentState;
  /** Milliseconds of the store's clock. */
  readonly leaseUntil: number;
  /** Of a delivery: its progress. */
  readonly reason?: string;
}

/** `now`: the store's clock, milliseconds. */
function countOpen(payments: Iterable<OpenPayment>, now: number): Omit<PaymentCensus, 'open'> {
  let uncertain = 0;
  let undelivered = 0;
  for (const { state, leaseUntil, reason } of payments) {
    if (state === 'settling' && leaseUntil <= now) uncertain += 1;
    if (state === 'undelivered' && reason !== ANSWER_KEPT) undelivered += 1;
  }
  return { uncertain, undelivered };
}

/** Fields with a buyer's request or signature: text that no command of the ledger reads. */
const SEALED_FIELDS = ['proof', 'backendRequest', 'rawTransaction'] as const satisfies readonly (keyof PaymentRecord)[];

/** Sealed data that could not be opened: a field of a record, or a kept answer. */
export type Unreadable = (typeof SEALED_FIELDS)[number] | 'answer';

/**
 * Seals proofs, signatures, inputs and answers for their record and field alone. The ring is asked
 * for each time, because keys may change while calls run. Without a ring nothing is sealed, and
 * sealed data is unreadable. A field that cannot be opened stays sealed text, which
 * `readStoredProof` and `readStoredRequest` refuse; a kept answer that cannot be opened is
 * undefined. `unreadable` gets each of them.
 */
export function sealedLedger(
  ledger: PaymentLedger,
  ringNow: () => KeyRing | undefined,
  unreadable: (what: Unreadable, payId: string) => void,
): PaymentLedger {
  const closed = <Fields extends object>(payId: string, fields: Fields): Fields => {
    const ring = ringNow();
    return ring === undefined ? fields : mapped(fields, (name, text) => sealText(ring, text, ['payment', payId, name]));
  };
  const opened = (record: PaymentRecord): PaymentRecord =>
    mapped(record, (name, text) => {
      const clear = openText(ringNow(), text, ['payment', record.payId, name]);
      if (clear === undefined) unreadable(name, record.payId);
      return clear ?? text;
    });
  const openedIn = <Answer extends Reservation | Advanced>(answer: Answer): Answer =>
    'record' in answer ? { ...answer, record: opened(answer.record) } : answer;
  const closedWriting = <Command extends Advance | Note>(command: Command): Command => {
    const { payId, facts, keeping } = command;
    const ring = ringNow();
    if (ring === undefined) return command;
    assertKeeping(keeping);
    return {
      ...command,
      ...(facts === undefined ? {} : { facts: closed(payId, facts) }),
      ...(keeping?.answer === undefined
        ? {}
        : { keeping: { ...keeping, answer: sealedAnswer(ring, payId, keeping.answer) } }),
    };
  };
  return {
    ...ledger,
    async reserve(command) {
      const { terms } = command;
      return openedIn(await ledger.reserve({ ...command, terms: closed(terms.payId, terms) }));
    },
    advance: async (command) => openedIn(await ledger.advance(closedWriting(command))),
    note: async (command) => openedIn(await ledger.note(closedWriting(command))),
    async read(payId) {
      const record = await ledger.read(payId);
      return record && opened(record);
    },
    async kept(payId) {
      const answer = await ledger.kept(payId);
      if (answer === undefined || answer.headers[SEALED_ANSWER] === undefined) return answer;
      const ring = ringNow();
      const clear = ring && openedAnswer(ring, payId, answer);
      if (clear === undefined) unreadable('answer', payId);
      return clear;
    },
    due: async (...asked) => (await ledger.due(...asked)).map(opened),
  };
}

/** Changes those sealed fields that an object has. */
function mapped<Fields extends object>(
  fields: Fields,
  change: (name: (typeof SEALED_FIELDS)[number], text: string) => string,
): Fields {
  const changed: Partial<Record<string, string>> = {};
  for (const name of SEALED_FIELDS) {
    const text: unknown = Reflect.get(fields, name);
    if (typeof text === 'string') changed[name] = change(name, text);
  }
  const isSame = SEALED_FIELDS.every((name) => changed[name] === Reflect.get(fields, name));
  return isSame ? fields : { ...fields, ...changed };
}

/** The status stays in clear; fields and body are sealed together. */
function sealedAnswer(ring: KeyRing, payId: string, { status, headers, body }: KeptAnswer): KeptAnswer {
  const clear = Buffer.concat([Buffer.from(JSON.stringify(headers)), SEPARATOR, body]);
  const sealed = ring.seal(clear, contextOf(payId, status));
  // No answer of a backend has fields of such a size: it is not kept.
  if (sealed.length > MAX_STORED_ANSWER_BYTES) throw new RangeError('the fields of an answer are too long to be kept');
  return { status, headers: { [SEALED_ANSWER]: '1' }, body: sealed };
}

function openedAnswer(ring: KeyRing, payId: string, { status, body }: KeptAnswer): KeptAnswer | undefined {
  const clear = ring.open(body, contextOf(payId, status));
  const end = clear?.indexOf(SEPARATOR) ?? -1;
  if (clear === undefined || end < 0) return undefined;
  const headers = JSON.parse(clear.toString('utf8', 0, end)) as KeptAnswer['headers'];
  return { status, headers, body: new Uint8Array(clear.subarray(end + SEPARATOR.length)) };
}

function contextOf(payId: string, status: number): readonly (string | number)[] {
  return ['kept', payId, status];
}
