import type { EventDraft, EventStretch } from '../../src/events/event.ts';
import { BEGINNING, comparePositions } from '../../src/events/position.ts';
import type { RegisterEpoch } from '../../src/mandates/register/register.ts';
import { finishUses, reserveUses } from '../../src/mandates/register/register-table.ts';
import { countOpen } from '../../src/payments/ledger/census.ts';
import type { Keeping, KeptAnswer, PaymentLedger, PaymentRecord, Reserve } from '../../src/payments/ledger/ledger.ts';
import { refusalEnds, unlessRefused } from '../../src/payments/ledger/refusals.ts';
import {
  admitted,
  advance,
  discard,
  endedUses,
  note,
  type Outcome,
  renew,
  reserve,
} from '../../src/payments/ledger/table.ts';
import { MOST_UNPAID } from '../../src/payments/ledger/unpaid.ts';
import { listsOf, type Receipt, type ReceiptList } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/port/store.ts';
import { tableClaims } from '../checkouts/table-claims.ts';
import { mapRegister, mapRows } from '../mandates/register/register-map.ts';

/** Which payment showed a token first, and until when that is known. */
export type ShownTokens = Map<string, { readonly payId: string; readonly until: number }>;

/** The payment that showed the command's token first. */
export function firstShown(tokens: ShownTokens, { token }: Reserve, now: number): string | undefined {
  const shown = token?.kind === 'issued' ? tokens.get(token.id) : undefined;
  return shown !== undefined && shown.until > now ? shown.payId : undefined;
}

/** What a reservation that changed something leaves behind of its token. */
export function noteToken(tokens: ShownTokens, command: Reserve, now: number): void {
  const { token, terms } = command;
  if (token?.kind !== 'issued' || firstShown(tokens, command, now) !== undefined) return;
  tokens.set(token.id, { payId: terms.payId, until: now + token.forMs });
}

/** What becomes true with a change of a record. */
interface Carried {
  readonly receipt?: Receipt;
  readonly dropReceipt?: string;
  readonly keeping?: Keeping;
  readonly events?: readonly EventDraft[];
}

/** Kept answers over a map. */
export type KeptAnswers = Map<string, { readonly answer: KeptAnswer; readonly until: number }>;

export function keepAnswer(answers: KeptAnswers, payId: string, keeping: Keeping | undefined, now: number): void {
  if (keeping === undefined) return;
  const before = answers.get(payId);
  const answer = keeping.answer ?? (before !== undefined && before.until > now ? before.answer : undefined);
  if (answer !== undefined) answers.set(payId, { answer, until: now + keeping.forMs });
}

/** Refused payments whose backend had answered, the latest first. */
export function unpaidAmong(records: Iterable<PaymentRecord>, limit: number): readonly PaymentRecord[] {
  return [...records]
    .filter(({ state, answered }) => state === 'refused' && answered !== undefined)
    .sort((a, b) => b.changedAt - a.changedAt)
    .slice(0, Math.min(limit, MOST_UNPAID));
}

/**
 * The pure table over maps: what the engines are compared with. Pages know one filter, the request.
 * `epoch`: of the register of mandates.
 */
export function tableStore(now: () => number, epoch: RegisterEpoch): Store {
  const records = new Map<string, PaymentRecord>();
  const uses = mapRows(epoch);
  const tokens: ShownTokens = new Map();
  const shared = new Map<string, string>();
  const receipts = new Map<string, Receipt>();
  const events: EventDraft[] = [];

  const refusals = new Map<string, { readonly reason: string; readonly until: number }>();
  const answers: KeptAnswers = new Map();

  const settle = <Answer>(payId: string, outcome: Outcome<Answer>, carried: Carried = {}): Answer => {
    const { answer, record, changed } = outcome;
    if (!changed) return answer;
    const ended = endedUses(records.get(payId), record);
    if (ended !== undefined) finishUses(uses, ended.claim, ended.how, now());
    const { receipt, keeping } = carried;
    if (record === undefined) records.delete(payId);
    else records.set(payId, record);
    if (receipt !== undefined) receipts.set(receipt.id, receipt);
    if (carried.dropReceipt !== undefined) receipts.delete(carried.dropReceipt);
    keepAnswer(answers, payId, keeping, now());
    events.push(...(carried.events ?? []));
    return answer;
  };
  const ledger: PaymentLedger = {
    reserve: async (command) => {
      const { payId } = command.terms;
      const before = records.get(payId);
      const outcome = reserve(before, command, now(), firstShown(tokens, command, now()));
      const taken = unlessRefused(outcome, before, command, (proof) => {
        const found = refusals.get(proof);
        return found !== undefined && found.until > now() ? found.reason : undefined;
      });
      const allowed = admitted(taken, before, (claim) => reserveUses(uses, claim, now()));
      if (allowed.changed && allowed.answer.kind === 'granted') noteToken(tokens, command, now());
      return settle(payId, allowed);
    },
    advance: async (command) => settle(command.payId, advance(records.get(command.payId), command, now()), command),
    note: async (command) => settle(command.payId, note(records.get(command.payId), command, now()), command),
    renew: async (claim, leaseMs) => settle(claim.payId, renew(records.get(claim.payId), { ...claim, leaseMs }, now())),
    discard: async (held, more, refusal) => {
      const discarded = settle(held.payId, discard(records.get(held.payId), held), { events: more });
      if (refusal === undefined || discarded.kind !== 'gone') return discarded;
      const { proof, reason } = refusal;
      if ((refusals.get(proof)?.until ?? 0) <= now())
        refusals.set(proof, { reason, until: refusalEnds(refusal, now()) });
      return discarded;
    },
    read: async (payId) => records.get(payId),
    kept: async (payId) => {
      const kept = answers.get(payId);
      return kept !== undefined && kept.until > now() ? kept.answer : undefined;
    },
    unpaid: async (limit) => unpaidAmong(records.values(), limit),
    due: async (limit) =>
      [...records.values()]
        .filter(({ dueAt }) => dueAt !== 0 && dueAt <= now())
        .sort((a, b) => a.dueAt - b.dueAt || (a.payId < b.payId ? -1 : 1))
        .slice(0, limit),
  };
  const entries = () =>
    events.map((event, i) => {
      const id = `evt_0-${i + 1}`;
      return { id, event: { id, ...event } };
    });
  const after = async (position: string, count: number): Promise<EventStretch> => ({
    entries: entries()
      .filter(({ id }) => comparePositions(id, position) > 0)
      .slice(0, count),
    standing: entries().some(({ id }) => id === position) ? 'held' : 'unknown',
  });
  return {
    name: 'sqlite',
    ledger,
    feed: {
      async append(more) {
        events.push(...more);
      },
      page: async ({ requestId }) => ({
        events: entries()
          .map(({ event }) => event)
          .filter((event) => requestId === undefined || event.requestId === requestId)
          .reverse(),
      }),
      after,
      newest: async () => entries().at(-1)?.id ?? BEGINNING,
      tail: () => ({ read: after, close: () => undefined }),
    },
    receipts: {
      async write(written) {
        for (const receipt of written) receipts.set(receipt.id, receipt);
      },
      page: async ({ requestId }) => ({
        receipts: [...receipts.values()]
          .filter((receipt) => requestId === undefined || receipt.requestId === requestId)
          .sort((a, b) => (a.id < b.id ? 1 : -1)),
      }),
      async add(written) {
        const paid = new Set([...receipts.values()].map(({ payment }) => payment?.replayKey));
        const fresh = written.filter(
          ({ id, payment }) => !receipts.has(id) && !(payment && paid.has(payment.replayKey)),
        );
        for (const receipt of fresh) receipts.set(receipt.id, receipt);
        return fresh.map(({ id }) => id);
      },
      async counts() {
        const lists = [...receipts.values()].flatMap(listsOf);
        const on = (list: ReceiptList) => lists.filter((one) => one === list).length;
        return { done: on('done'), owed: on('owed'), uncertain: on('uncertain') };
      },
      trimmed: () => ({ length: 0, age: 0 }),
      trimmedRange: async () => undefined,
    },
    mandates: mapRegister(uses, now),
    checkouts: tableClaims(now),
    secrets: {
      async agree(name, candidate) {
        if (!shared.has(name)) shared.set(name, candidate);
        return shared.get(name) ?? candidate;
      },
    },
    census: async () => {
      const open = [...records.values()].filter(({ dueAt }) => dueAt !== 0);
      return { open: open.length, ...countOpen(open, now()) };
    },
    check: async () => ({ status: 'ok' }),
    tidy: async () => false,
    close: async () => undefined,
  };
}
