/** Wraps a ledger whose store must not read what buyers send: seals fields and opens them. */

import { type KeyRing, openText, sealText } from '../../crypto/seal.ts';
import { assertKeeping } from './invariants.ts';
import {
  type Advanced,
  type Keeping,
  type KeptAnswer,
  MAX_STORED_ANSWER_BYTES,
  type PaymentLedger,
  type PaymentRecord,
  type Reservation,
  SEALED_ANSWER,
} from './ledger.ts';

/** What a buyer sent or signed. All are text that no command of the ledger reads. */
const SEALED_FIELDS = ['proof', 'backendRequest', 'rawTransaction'] as const satisfies readonly (keyof PaymentRecord)[];

/** What could not be opened: a field of a record, or a kept answer. */
export type Unreadable = (typeof SEALED_FIELDS)[number] | 'answer';

const SEPARATOR = Buffer.from('\n');

/**
 * Seals proofs, signatures, inputs and answers for their record and field alone. The ring is asked
 * for each time, because keys may change while calls run. Without a ring
 * nothing is sealed, and what was sealed before is unreadable. A field that cannot be opened stays
 * sealed text, which `readStoredProof` and `readStoredRequest` refuse; a kept answer that cannot be
 * opened is none. `unreadable` gets each of them.
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
  const closedKeeping = (payId: string, keeping: Keeping | undefined): { readonly keeping?: Keeping } => {
    if (keeping === undefined) return {};
    const ring = ringNow();
    const { answer } = keeping;
    if (ring === undefined || answer === undefined) return { keeping };
    assertKeeping(keeping);
    return { keeping: { ...keeping, answer: sealedAnswer(ring, payId, answer) } };
  };
  return {
    ...ledger,
    async reserve(command) {
      const { terms } = command;
      return openedIn(await ledger.reserve({ ...command, terms: closed(terms.payId, terms) }));
    },
    async advance(command) {
      const { payId, facts, keeping } = command;
      const sealed = {
        ...(facts === undefined ? {} : { facts: closed(payId, facts) }),
        ...closedKeeping(payId, keeping),
      };
      return openedIn(await ledger.advance({ ...command, ...sealed }));
    },
    async note(command) {
      const { payId, facts, keeping } = command;
      const sealed = {
        ...(facts === undefined ? {} : { facts: closed(payId, facts) }),
        ...closedKeeping(payId, keeping),
      };
      return openedIn(await ledger.note({ ...command, ...sealed }));
    },
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

/** An object with its sealed fields, where it has them, changed. */
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
