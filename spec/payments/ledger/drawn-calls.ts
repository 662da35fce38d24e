import { randomUUID } from 'node:crypto';
import type { EventDraft } from '../../../src/events/event.ts';
import type {
  Advance,
  Advanced,
  Claim,
  Discarded,
  Evidence,
  Holder,
  Keeping,
  Note,
  PaymentFacts,
  PaymentRecord,
  PaymentState,
  PaymentTerms,
  Refusal,
  Reservation,
  Reserve,
} from '../../../src/payments/ledger/ledger.ts';
import { claimOf, mandateText } from '../../mandates/register/register-map.ts';
import type { Command, Seen, Writer } from './drawn-commands.ts';
import { event, keptAnswer, REFUND, receipt, sha256, TRANSACTION, terms } from './samples.ts';

/** The authorization of one walk, not used before. */
export interface Subject {
  readonly requestId: string;
  readonly offered: PaymentTerms;
}

/** One call of the port, with all its bytes: the same for a repetition. */
export type Call =
  | { readonly kind: 'reserve'; readonly command: Reserve }
  | { readonly kind: 'advance'; readonly command: Advance }
  | { readonly kind: 'note'; readonly command: Note }
  | { readonly kind: 'renew'; readonly claim: Claim; readonly leaseMs: number }
  | {
      readonly kind: 'discard';
      readonly holder: Holder;
      readonly events: readonly EventDraft[];
      readonly refusal?: Refusal;
    };

/** What the table answers to a call. */
export type Answer = Reservation | Advanced | Discarded | boolean;

export function newSubject(): Subject {
  const requestId = randomUUID();
  return { requestId, offered: terms(requestId, { requestId }) };
}

/** Turns a drawn command into a call. `record`: as it stands. */
export function callOf(
  command: Command,
  { requestId, offered: subject }: Subject,
  record: PaymentRecord | undefined,
): Call {
  const { leaseMs } = command;
  if (command.kind === 'reserve') {
    const bind = command.otherBind ? sha256('something else') : subject.bind;
    const key = command.key === 'none' ? {} : { keyDigest: sha256(command.key) };
    const shown =
      command.token === 'none' ? {} : { tokenDigest: sha256(`${subject.payId} ${tokenName(command.token)}`) };
    const token = newTokenOf(command.token, requestId);
    const mandate = command.mandate ? { mandate: mandateText(claimOf(requestId)) } : {};
    return {
      kind: 'reserve',
      command: {
        terms: { ...subject, ...key, ...shown, ...mandate, bind },
        ...token,
        owner: command.owner,
        leaseMs,
        ...(command.longestMs === undefined ? {} : { longestMs: command.longestMs }),
        ...(command.proof === 'none' ? {} : { proof: proofOf(subject, command.proof) }),
      },
    };
  }
  const claim = { payId: subject.payId, ...writerOf(command.writer, record) };
  const holder = { ...claim, step: command.step };
  const events = [event('backend.called', requestId, { data: { step: command.step } })];
  if (command.kind === 'renew') return { kind: 'renew', claim, leaseMs };
  if (command.kind === 'discard') {
    const { refusal } = command;
    if (refusal === undefined) return { kind: 'discard', holder, events };
    const reason = `because-${command.step}`;
    const proof = proofOf(subject, refusal.proof);
    const until = subject.validBefore * 1_000;
    return { kind: 'discard', holder, events, refusal: { proof, reason, until, atMostMs: refusal.forMs } };
  }
  const { againMs, keeping } = command;
  const to = command.kind === 'advance' ? command.to : undefined;
  const writing = {
    ...holder,
    ...seenOf(command.seen, record),
    ...(command.unchanged ? { unchanged: true as const } : {}),
    leaseMs,
    ...(againMs === undefined ? {} : { againMs }),
    facts: factsOf(command, to),
    ...(keeping === undefined ? {} : { keeping: keepingOf(keeping) }),
  };
  const written = receipt(subject.receiptId, requestId, { backendStatus: command.serial });
  const carried = command.receipt ? { receipt: written } : {};
  if (command.kind === 'note')
    return { kind: 'note', command: { ...writing, ...carried, ...(command.events ? { events } : {}) } };
  const dropped = command.dropReceipt ? { dropReceipt: subject.receiptId } : {};
  return { kind: 'advance', command: { ...writing, to: command.to, events, ...carried, ...dropped } };
}

function keepingOf({ text, forMs }: NonNullable<Extract<Command, { kind: 'note' }>['keeping']>): Keeping {
  return text === undefined ? { forMs } : { answer: keptAnswer(text), forMs };
}

function proofOf({ payId }: PaymentTerms, which: 'good' | 'forged'): string {
  return sha256(`${payId}-${which}`).slice(0, 22);
}

type DrawnToken = Extract<Command, { kind: 'reserve' }>['token'];

/** A stored or stale token opens what it paid for like any other. */
function tokenName(token: DrawnToken): string {
  return token === 'other' ? 'other' : 'first';
}

function newTokenOf(token: DrawnToken, requestId: string): Pick<Reserve, 'token'> {
  if (token === 'none' || token === 'stored') return {};
  if (token === 'malformed') return { token: { kind: 'issued', id: token, forMs: 600_000 } };
  if (token === 'stale') return { token: { kind: 'worthless' } };
  return { token: { kind: 'issued', id: sha256(`${requestId} ${tokenName(token)}`), forMs: 600_000 } };
}

function writerOf(writer: Writer, record: PaymentRecord | undefined): Pick<Claim, 'owner' | 'fence'> {
  const { owner, fence } = record ?? { owner: 'ada', fence: 1 };
  switch (writer) {
    case 'owner':
      return { owner, fence };
    case 'former':
      return { owner: 'ada', fence: Math.max(1, fence - 1) };
    case 'stranger':
      return { owner: 'mallory', fence };
    case 'later':
      return { owner, fence: fence + 1 };
  }
}

/** A wrong one has another step: a table that trusts it answers what it never held. */
function seenOf(seen: Seen, record: PaymentRecord | undefined): Pick<Holder, 'seen'> {
  if (seen === 'none' || record === undefined) return {};
  return { seen: seen === 'last' ? record : { ...record, step: 'never written', resourceId: 'another' } };
}

function factsOf(command: Extract<Command, { kind: 'advance' | 'note' }>, to: PaymentState | undefined): PaymentFacts {
  const { transaction, rawTransaction, reason, recovered, sending, sent, bought, key } = command;
  const evidence = command.evidence === 'fitting' ? fitting(to, command.step) : command.evidence;
  return {
    ...(transaction ? { transaction: TRANSACTION } : {}),
    ...(rawTransaction ? { rawTransaction: '0x02f8' } : {}),
    ...(reason === undefined ? {} : { reason }),
    ...(evidence === undefined ? {} : { evidence }),
    ...(recovered ? { recovered: 'chain' } : {}),
    // Now and then where it does not belong, or missing where it does.
    ...((to === 'refunding' || to === 'refunded') !== (command.serial % 16 === 0) ? { refundTransaction: REFUND } : {}),
    ...((to === 'worked') !== (command.serial % 16 === 1) ? { answered: 200 } : {}),
    ...(sending === undefined ? {} : { sending }),
    ...(sent === undefined ? {} : { sendings: sent, sentBytes: sent * 100_000, ofBytes: 0 }),
    // A note is for a refused record then; with a change of state it is a bug.
    ...(bought && (to === undefined || command.serial % 32 === 2) ? { bought: sha256('buyer') } : {}),
    ...(key ? { keyDigest: sha256('first') } : {}),
  };
}

function fitting(to: PaymentState | undefined, seed: string): Evidence | undefined {
  const third = Number(seed.split('-')[1]) % 3;
  if (to === 'settled') return (['logs', 'claim', 'operator'] as const)[third];
  if (to === 'refused') return (['expired', seed.length > 6 ? 'elsewhere' : 'unclaimed', 'unsent'] as const)[third];
  return undefined;
}
