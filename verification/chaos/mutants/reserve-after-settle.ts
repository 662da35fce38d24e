/** Mutant: a call writes its record only after its settlement. */

import type { Advance, Holder, Note, PaymentLedger, PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { advance, note, type Outcome, reserve } from '../../../src/payments/ledger/table.ts';
import { misbehave } from './misbehave.ts';

function late(ledger: PaymentLedger): PaymentLedger {
  const own = new Map<string, PaymentRecord>();
  const apply = <T>(command: Holder, change: (record: PaymentRecord) => Outcome<T>): T | undefined => {
    const record = own.get(command.owner);
    if (record === undefined) return undefined;
    const outcome = change(record);
    if (outcome.record !== undefined) own.set(command.owner, outcome.record);
    return outcome.answer;
  };
  const writeDown = async (record: PaymentRecord, command: Advance): Promise<void> => {
    const reservation = await ledger.reserve({ terms: record, owner: record.owner, leaseMs: command.leaseMs });
    if (reservation.kind !== 'granted') return;
    const { owner, fence } = reservation.record;
    const held = { ...command, owner, fence };
    await ledger.advance({ ...held, step: `${command.step}-begun`, to: 'settling', facts: {}, events: [] });
    await ledger.advance(held);
  };
  return {
    ...ledger,
    async reserve(command) {
      if ((await ledger.read(command.terms.payId)) !== undefined) return ledger.reserve(command);
      const { answer, record } = reserve(undefined, command, Date.now());
      if (record !== undefined) own.set(record.owner, record);
      return answer;
    },
    async advance(command) {
      const answer = apply(command, (record) => advance(record, command, Date.now()));
      if (answer?.kind !== 'done') return answer ?? ledger.advance(command);
      if (command.to === 'settled') {
        own.delete(command.owner);
        await writeDown(answer.record, command);
      }
      return answer;
    },
    note: async (command: Note) =>
      apply(command, (record) => note(record, command, Date.now())) ?? ledger.note(command),
    async discard(command, ...more) {
      return own.delete(command.owner) ? { kind: 'gone' } : ledger.discard(command, ...more);
    },
  };
}

await misbehave({ ledger: late });
