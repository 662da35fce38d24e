/** The wrong designs that the simulator must notice. */

import { randomUUID } from 'node:crypto';
import type {
  Advance,
  Holder,
  Keeping,
  Note,
  PaymentLedger,
  PaymentRecord,
} from '../../../src/payments/ledger/ledger.ts';
import { receiptOf } from '../../../src/payments/ledger/payment-receipt.ts';
import type { Settlement } from '../../../src/payments/rail.ts';
import type { PaymentRail } from '../../../src/payments/x402/wire/types.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { transactionOf } from './rail.ts';
import type { Mutant } from './seeds.ts';

/** Wrong designs, most of them common. Each changes one port. */
const MUTANTS: readonly Mutant[] = [
  {
    name: '402 when the settlement did not answer',
    shows: /one call paid \d times|402 for/,
    rail: (rail) => ({
      ...rail,
      settle: async (...asked) => orRefused(await rail.settle(...asked)),
    }),
  },
  {
    name: '402 when no node took the transaction',
    shows: /one call paid \d times|402 for/,
    rail: (rail) => ({
      ...rail,
      async settle(...asked) {
        const settlement = await rail.settle(...asked);
        if (settlement.kind !== 'withdrawn') return settlement;
        return { kind: 'refused', reason: settlement.cause, evidence: 'unsent' };
      },
    }),
  },
  {
    name: 'a nonce that is used counts as paid',
    shows: /an answer without a payment|the chain shows no payment/,
    rail: (rail, chain) => ({
      ...rail,
      settle: async (proof, ...more) =>
        usedIsPaid(chain.used(nonceOf(proof)), proof) ?? (await rail.settle(proof, ...more)),
      reconcile: async (proof, ...more) =>
        usedIsPaid(chain.used(nonceOf(proof)), proof) ?? (await rail.reconcile(proof, ...more)),
    }),
  },
  {
    name: 'a spent nonce is refused like any other',
    shows: /402 for an authorization that has paid/,
    rail: (rail) => ({
      ...rail,
      async verify(...asked) {
        const verdict = await rail.verify(...asked);
        return verdict.kind === 'refused' ? { ...verdict, nonceSpent: false } : verdict;
      },
    }),
  },
  {
    name: 'an unused nonce is called expired before its time is over',
    shows: /402 for an authorization/,
    rail: (rail) => ({
      ...rail,
      async reconcile(...asked) {
        const shown = await rail.reconcile(...asked);
        return shown.kind === 'open' ? { kind: 'refused', reason: 'unused', evidence: 'expired' } : shown;
      },
    }),
  },
  {
    name: 'a settlement that may have begun is forgotten',
    shows: /illegal: settling -> reserved/,
    reads: (record, now) => (record.state === 'settling' && record.leaseUntil <= now ? undefined : record),
  },
  {
    name: 'no fencing',
    shows: /illegal transition/,
    ledger: (ledger) => ({
      ...ledger,
      advance: async (command) => ledger.advance(await asHolder(ledger, command)),
      note: async (command) => ledger.note(await asHolder(ledger, command)),
      discard: async (holder, ...more) => ledger.discard(await asHolder(ledger, holder), ...more),
    }),
  },
  {
    name: 'reservations ignore live leases',
    shows: /a live lease was taken/,
    reads: (record) => ({ ...record, leaseUntil: 0 }),
  },
  {
    name: 'leases by the clock of each process',
    shows: /a live lease was taken/,
    commits: (commits, process) => {
      const skewMs = process.startsWith('A') ? 9_000 : 0;
      return {
        ...commits,
        now: () => commits.now() + skewMs,
        commit: ({ notBefore: _unchecked, ...commit }, how) => commits.commit(commit, how),
      };
    },
  },
  {
    name: 'the table does not ask what was bought',
    shows: /an answer to something else/,
    ledger: (ledger) => ({
      ...ledger,
      async reserve(command) {
        const { bind = command.terms.bind } = (await ledger.read(command.terms.payId)) ?? {};
        return ledger.reserve({ ...command, terms: { ...command.terms, bind } });
      },
    }),
  },
  {
    name: 'a resumed request does not record that it may be written',
    shows: /a request that must not be repeated was sent/,
    needsCrashes: true,
    ledger: (ledger) => ({ ...ledger, note: (command) => ledger.note(withoutReason(command)) }),
  },
  {
    name: 'a delivered payment can be delivered again',
    shows: /illegal: delivered -> undelivered/,
    reads: (record) => (record.state === 'delivered' ? { ...record, state: 'undelivered' } : record),
  },
  {
    name: 'a repeated write has a step of its own',
    shows: /events payment\.settled|sent [2-9] times|a bug: illegal transition/,
    ledger: (ledger) => ({
      ...ledger,
      advance: (command) => ledger.advance({ ...command, step: randomUUID() }),
      note: (command) => ledger.note({ ...command, step: randomUUID() }),
    }),
  },
  {
    name: 'a payment is forgotten after a failed delivery',
    shows: /illegal: undelivered -> /,
    reads: ({ state, ...record }) => (state === 'undelivered' ? undefined : { ...record, state }),
  },
  {
    name: 'no receipt with a refund',
    shows: /the receipt of refundDue/,
    ledger: (ledger) => ({
      ...ledger,
      advance: ({ receipt, ...command }) =>
        ledger.advance(command.to === 'refundDue' || receipt === undefined ? command : { ...command, receipt }),
    }),
  },
  {
    name: 'the secret of a kept answer is not asked for',
    shows: /without its secret/,
    ledger: (ledger) => ({ ...ledger, reserve: async (command) => unguarded(ledger, command) }),
  },
  {
    name: 'the token of a purchase that runs or waits is not asked for',
    shows: /a guarded answer to a call without its secret/,
    ledger: (ledger) => ({
      ...ledger,
      async reserve(command) {
        const { tokenDigest = command.terms.tokenDigest } = (await ledger.read(command.terms.payId)) ?? {};
        const terms = tokenDigest === undefined ? command.terms : { ...command.terms, tokenDigest };
        return ledger.reserve({ ...command, terms });
      },
    }),
  },
  {
    name: 'no process renews leases',
    shows: /an attempt that lives lost its lease/,
    ledger: (ledger) => ({ ...ledger, renew: async () => true }),
  },
  {
    name: 'nothing is ever due',
    shows: /left open as|open after a day/,
    ledger: (ledger) => ({ ...ledger, due: async () => [] }),
  },
];

/** Wrong designs of a payment that is settled after its call. */
const WORKED_FIRST: readonly Mutant[] = [
  {
    name: 'the answer is released while it is uncertain whether it is paid',
    shows: /an answer without a payment|the chain shows no payment/,
    rail: (rail) => ({
      ...rail,
      async settle(proof, ...more) {
        const settlement = await rail.settle(proof, ...more);
        return settlement.kind === 'uncertain' ? paidFor(proof) : settlement;
      },
    }),
  },
  {
    name: 'the payment is settled before the answer is sealed',
    shows: /answered, and no answer is kept/,
    ledger: (ledger) => ({
      ...ledger,
      advance: ({ keeping, ...command }) =>
        ledger.advance(isSealed(command) || keeping === undefined ? command : { ...command, keeping }),
    }),
  },
  {
    name: 'the answer is sealed once the payment is settled',
    shows: /answered, and no answer is kept/,
    ledger: (ledger) => {
      const answers = new Map<string, Keeping>();
      return {
        ...ledger,
        advance({ keeping, ...command }) {
          if (isSealed(command) && keeping !== undefined) answers.set(command.payId, keeping);
          const sealed = command.to === 'settled' ? answers.get(command.payId) : keeping;
          return ledger.advance(isSealed(command) || sealed === undefined ? command : { ...command, keeping: sealed });
        },
      };
    },
  },
  {
    name: 'an answer that was worked for is forgotten with its lease',
    shows: /illegal: worked -> reserved/,
    reads: (record, now) => (record.state === 'worked' && record.leaseUntil <= now ? undefined : record),
  },
  {
    name: 'settling is not written before the money moves',
    shows: /ends open|refused, and the chain shows a payment/,
    ledger: (ledger) => ({
      ...ledger,
      async advance(command) {
        const record = command.to === 'settling' ? await ledger.read(command.payId) : undefined;
        if (record?.state !== 'worked' && record?.state !== 'reserved') return ledger.advance(command);
        return { kind: 'done', record: { ...record, ...command.facts, state: 'settling' } };
      },
    }),
  },
  {
    name: 'the kept answer is not read',
    shows: /asked again for an answer that is kept/,
    ledger: (ledger) => ({ ...ledger, kept: async () => undefined }),
  },
  {
    name: 'an answer that waits is not found',
    shows: /asked again for an answer that waits/,
    ledger: (ledger) => ({
      ...ledger,
      async read(payId) {
        const record = await ledger.read(payId);
        return record?.answered !== undefined && record.state === 'refused' ? undefined : record;
      },
    }),
  },
  {
    name: 'a delivered answer stays as long as one that waits',
    shows: /a delivered answer after its time/,
    ledger: (ledger) => ({
      ...ledger,
      advance: ({ keeping, ...command }) =>
        ledger.advance(command.to === 'delivered' || keeping === undefined ? command : { ...command, keeping }),
    }),
  },
  {
    name: 'work without pay has a receipt',
    shows: /a receipt for a payment that is (worked|settling)/,
    ledger: (ledger) => ({
      ...ledger,
      async advance(command) {
        const receipt = isSealed(command) ? receiptOfWork(await ledger.read(command.payId)) : command.receipt;
        return ledger.advance(receipt === undefined ? command : { ...command, receipt });
      },
    }),
  },
];

export const ALL_MUTANTS: readonly Mutant[] = [
  ...MUTANTS,
  ...WORKED_FIRST.map((mutant): Mutant => ({ ...mutant, settle: 'after' })),
];

/** Whether a write brings the backend's answer, which must be kept with it. */
function isSealed({ facts }: Pick<Advance, 'facts'>): boolean {
  return facts?.answered !== undefined;
}

function paidFor(proof: Parameters<PaymentRail['settle']>[0]) {
  return { kind: 'settled', evidence: 'logs', transaction: transactionOf(nonceOf(proof)) } as const;
}

function receiptOfWork(record: PaymentRecord | undefined): Receipt | undefined {
  const at = new Date(0);
  return record && receiptOf(record, { settledAt: at, at, durationMs: 0, delivery: undefined });
}

function orRefused(settlement: Settlement): Settlement {
  return settlement.kind === 'uncertain'
    ? { kind: 'refused', reason: settlement.cause, evidence: 'unsent' }
    : settlement;
}

function usedIsPaid(used: boolean, proof: Parameters<PaymentRail['settle']>[0]) {
  return used ? paidFor(proof) : undefined;
}

function nonceOf({ payload }: Parameters<PaymentRail['settle']>[0]): string {
  return payload.payload.authorization.nonce;
}

async function asHolder<Command extends Holder>(ledger: PaymentLedger, command: Command): Promise<Command> {
  const record = await ledger.read(command.payId);
  return record === undefined ? command : { ...command, owner: record.owner, fence: record.fence };
}

function withoutReason({ facts, ...command }: Note): Note {
  if (facts?.reason !== 'request_may_be_written') return facts === undefined ? command : { ...command, facts };
  const { reason: _reason, ...others } = facts;
  return { ...command, facts: others };
}

async function unguarded(ledger: PaymentLedger, command: Parameters<PaymentLedger['reserve']>[0]) {
  const reservation = await ledger.reserve(command);
  if (reservation.kind !== 'completed') return reservation;
  const { keyDigest: _key, tokenDigest: _token, ...record } = reservation.record;
  const { keyDigest, tokenDigest } = command.terms;
  return {
    ...reservation,
    record: {
      ...record,
      ...(keyDigest === undefined ? {} : { keyDigest }),
      ...(tokenDigest === undefined ? {} : { tokenDigest }),
    },
  };
}
