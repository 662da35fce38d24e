import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { PaymentRecord, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { TRANSITIONS } from '../../../src/payments/ledger/table.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import { TRANSACTION, terms } from '../ledger/samples.ts';

function record(state: PaymentState, more: Partial<PaymentRecord> = {}): PaymentRecord {
  const held = { owner: 'o', fence: 1, leaseUntil: 0, dueAt: 0, step: 's', tries: 0, reservedAt: 1, changedAt: 1 };
  return { ...terms(), ...held, state, ...more };
}

describe('the witness of a 402', () => {
  for (const state of Object.keys(TRANSITIONS) as PaymentState[])
    if (state !== 'refused')
      it(`is not made for a payment that is ${state}, whatever its record claims`, () => {
        const claims = { evidence: 'expired', reason: 'expired' } as const;
        assert.throws(() => SafeToRechallenge.refused(record(state, claims), false), /no 402/);
      });

  it('is not made for a refusal without evidence', () => {
    assert.throws(() => SafeToRechallenge.refused(record('refused', { reason: 'claimed' }), false), /no 402/);
  });

  it('of a refused payment has its reason, the phase and the transaction', () => {
    const refused = record('refused', { evidence: 'elsewhere', reason: 'cancelled', transaction: TRANSACTION });
    const { reason, phase, transaction, recorded } = SafeToRechallenge.refused(refused, true);
    assert.deepEqual([reason, phase, transaction, recorded], ['cancelled', 'settle', TRANSACTION, true]);
  });

  it('of a proof that has no record is of the phase verify', () => {
    for (const owed of [
      SafeToRechallenge.unreserved({ kind: 'none' }, { reason: 'x' }),
      SafeToRechallenge.discarded({ kind: 'gone' }, 'x'),
    ]) {
      const { reason, phase, transaction, recorded } = owed;
      assert.deepEqual([reason, phase, transaction, recorded], ['x', 'verify', undefined, false]);
    }
  });

  it('is different from each copy of it', () => {
    const real = SafeToRechallenge.unreserved({ kind: 'none' }, { reason: 'x' });
    assert.ok(SafeToRechallenge.is(real));
    const copies: readonly object[] = [
      { ...real },
      Object.create(SafeToRechallenge.prototype) as object,
      structuredClone(real),
    ];
    for (const copy of copies) assert.equal(SafeToRechallenge.is(copy), false);
  });
});

describe('the sources that write a 402', () => {
  const sources = globSync('src/**/*.ts').map((file) => ({ file, text: readFileSync(file, 'utf8') }));
  const using = (what: RegExp): readonly string[] =>
    sources
      .filter(({ text }) => what.test(text))
      .map(({ file }) => file)
      .toSorted();

  it('only pipeline/middleware/challenge.ts asks for payment, and the response writer that notes outcomes passes it on', () => {
    assert.deepEqual(using(/\.paymentRequired\(/), ['src/pipeline/call.ts', 'src/pipeline/middleware/challenge.ts']);
    const noting = sources.find(({ file }) => file === 'src/pipeline/call.ts')?.text ?? '';
    assert.equal(noting.match(/\.paymentRequired\(/g)?.length, 1);
    assert.match(
      noting,
      /\n {4}paymentRequired\(challenge, payment\) \{[^}]*responseWriter\.paymentRequired\(challenge, payment\);\n {4}\},/,
    );
  });

  it('only a response writer writes the status, and no failure is thrown that has it', () => {
    const status = /\b402\s*,|(?:status(?:Code)?\s*[(=]\s*|writeHead\(\s*)402\b/;
    assert.deepEqual(using(status), ['src/adapters/http/response-writer.ts', 'src/errors.ts']);
    assert.deepEqual(using(/GatewayError\(\s*'(?:PAYMENT_REQUIRED|PAYMENT_INVALID)'/), []);
  });

  it('each function that makes a witness has no caller but these', () => {
    assert.deepEqual(using(/SafeToRechallenge\.unreserved\(/), ['src/pipeline/middleware/verify.ts']);
    assert.deepEqual(using(/SafeToRechallenge\.discarded\(/), ['src/payments/settlement/settle.ts']);
    assert.deepEqual(using(/SafeToRechallenge\.refusedBefore\(/), ['src/payments/settlement/existing-payment.ts']);
    assert.deepEqual(using(/SafeToRechallenge\.refused\(/), [
      'src/payments/settlement/existing-payment.ts',
      'src/payments/settlement/settlement-writes.ts',
    ]);
  });

  it('a witness is made nowhere else, and by no cast', () => {
    assert.deepEqual(using(/new SafeToRechallenge\(/), ['src/payments/settlement/safe-to-rechallenge.ts']);
    assert.deepEqual(using(/as (?:unknown as )?SafeToRechallenge\b/), []);
  });
});
