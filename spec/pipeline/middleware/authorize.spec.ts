import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import { type MandateVerdict, REASONS, type Reason } from '../../../src/mandates/ap2/reasons.ts';
import type { MandateService } from '../../../src/mandates/ap2/verify.ts';
import { readStoredMandate, storedMandate } from '../../../src/mandates/stored-mandate.ts';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { SafeToRechallenge } from '../../../src/payments/settlement/safe-to-rechallenge.ts';
import type { FundedCall, ProvenCall } from '../../../src/pipeline/call.ts';
import { PendingRefusal } from '../../../src/pipeline/collecting.ts';
import { authorize, paymentMandate, unauthorized } from '../../../src/pipeline/middleware/authorize.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { purchaseWith } from '../../support/ap2/purchase.ts';
import {
  ACCEPTED,
  callAt,
  EXPIRED,
  OFFERS,
  passed,
  proven as provenCall,
  RESOURCE,
  scriptedMandates,
} from '../calls.ts';

const MISSING: MandateVerdict = {
  kind: 'refused',
  reason: 'mandate_required',
  reference: undefined,
  issuer: undefined,
};
const resource = { ...RESOURCE, authorization: ['ap2'] };
const payment = { payId: 'p', payload: { payload: { authorization: { from: '0xpayer', nonce: '0x55' } } } };
const proven = (more: object = {}) => callAt('proven', { resource, payment, agreed: OFFERS.get('report'), ...more });
const free = () => callAt('funded', { resource, funding: { kind: 'free' } });

const authorized = ({ res }: ReturnType<typeof callAt>, mandates: MandateService) => passed(authorize(mandates), res);

/** The error of a paid call whose payment is not known. */
async function refused(call: ReturnType<typeof callAt>, mandates: MandateService): Promise<GatewayError> {
  const { went, error } = await authorized(call, mandates);
  assert.ok(!went && (error as unknown) instanceof PendingRefusal);
  assert.deepEqual(call.events(), []);
  try {
    (error as unknown as PendingRefusal).refuse({ kind: 'none' });
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError);
    return thrown;
  }
  return assert.fail('not refused');
}

describe('the mandate of a paid call', () => {
  it('accepted: the call goes on with it, and nothing was written', async () => {
    const call = proven();
    const { mandates, asked } = scriptedMandates(ACCEPTED);
    const { went } = await authorized(call, mandates);
    assert.deepEqual([went, asked], [true, ['verify text']]);
    assert.deepEqual(call.call<ProvenCall>().mandated, ACCEPTED);
    assert.deepEqual(call.events(), [], 'it is recorded with its payment');
  });

  it('refused: an error with reason, part, receipt and a fresh challenge; one event', async () => {
    const call = proven();
    const verdict = { ...EXPIRED, constraint: 'payment.budget' } as const;
    const error = await refused(call, scriptedMandates(verdict).mandates);
    assert.deepEqual(call.call<ProvenCall>().mandated, verdict, 'a record that answers may name it');
    assert.deepEqual([error.code, error.status, error.retryable], ['AUTHORIZATION_INVALID', 403, false]);
    assert.deepEqual(error.details, {
      reason: 'checkout_expired',
      mandate: 'checkout',
      constraint: 'payment.budget',
      receipt: 'rejected leaf checkout_expired',
    });
    assert.deepEqual(error.authorization, {
      required: [{ method: 'ap2', resourceId: 'report', amount: '0.01', currency: 'TUSD' }],
    });
    const data = { method: 'ap2', reason: 'checkout_expired', issuer: 'https://provider.example' };
    assert.deepEqual(
      call.events().map((event) => [event.type, event.data]),
      [['authorization.rejected', data]],
    );
  });

  it('missing: the error names what is required, and has no receipt', async () => {
    const error = await refused(proven(), scriptedMandates(MISSING).mandates);
    assert.equal(error.code, 'AUTHORIZATION_REQUIRED');
    assert.deepEqual(error.details, { reason: 'mandate_required', required: ['ap2'], missing: ['ap2'] });
    assert.ok(error.authorization);
    assert.match(error.message, /Agent-Authorization.*_authorization/);
  });

  it('with keys that cannot be fetched: a provider error, not a refusal', async () => {
    const call = proven();
    const unavailable = { ...MISSING, reason: 'provider_unavailable', cause: 'why' } as const;
    const error = await refused(call, scriptedMandates(unavailable).mandates);
    assert.deepEqual([error.code, error.retryable, error.cause], ['AUTHORIZATION_PROVIDER_UNAVAILABLE', true, 'why']);
    assert.deepEqual([error.headers['retry-after'], error.details], ['1', { reason: 'provider_unavailable' }]);
    assert.deepEqual(call.events(), []);
  });

  it('that comes as two different ones is not checked', async () => {
    const { mandates, asked } = scriptedMandates(ACCEPTED);
    const { error } = await authorized(proven({ mandate: { kind: 'conflicting' } }), mandates);
    assert.deepEqual([error?.code, error?.details?.reason, asked], ['INPUT_INVALID', 'mandates_differ', []]);
  });

  it('is not checked where none is required', async () => {
    const { mandates, asked } = scriptedMandates(EXPIRED);
    const { went } = await authorized(proven({ resource: RESOURCE }), mandates);
    assert.deepEqual([went, asked], [true, []]);
  });
});

describe('the mandate of a free call', () => {
  it('is reserved before the backend is called, under a name that no caller chose', async () => {
    const [call, other] = [free(), free()];
    const { mandates, asked } = scriptedMandates(ACCEPTED);
    await authorized(call, mandates);
    await authorized(other, mandates);
    const names = asked.filter((line) => line.startsWith('reserve')).map((line) => line.split(' ')[1]);
    assert.equal(new Set(names).size, 2, 'two calls under one request id');
    const { authorization } = call.call<FundedCall>();
    const { issuer: mandateIssuer, checkoutIssuer, checkoutId } = ACCEPTED;
    assert.deepEqual(authorization?.summary, {
      method: 'ap2',
      reference: 'leaf',
      metadata: { mandateIssuer, checkoutIssuer, checkoutId },
    });
    assert.equal(authorization.receipt, 'accepted leaf r no payment');
    await authorization.finish?.('commit');
    assert.equal(asked.at(-1), `commit ${names[0]}`);
    assert.deepEqual(
      call.events().map(({ type, data }) => [type, data?.['mandateId']]),
      [['authorization.verified', 'closed']],
    );
  });

  it('used before: 409 with the receipt of the refusal, and no event of acceptance', async () => {
    const call = free();
    const { mandates } = scriptedMandates(ACCEPTED, async () => ({ kind: 'refused', reason: 'open_mandate_spent' }));
    const { went, error } = await authorized(call, mandates);
    assert.deepEqual([went, error?.code, error?.status], [false, 'AUTHORIZATION_REPLAYED', 409]);
    assert.equal(error?.details?.receipt, 'rejected leaf open_mandate_spent');
    assert.deepEqual(call.types(), ['authorization.rejected']);
  });

  it('over its budget: 403', async () => {
    const { mandates } = scriptedMandates(ACCEPTED, async () => ({ kind: 'refused', reason: 'recurrence_too_soon' }));
    assert.equal((await authorized(free(), mandates)).error?.status, 403);
  });

  it('is released when the register is silent, which may have reserved it', async () => {
    const { mandates, asked } = scriptedMandates(ACCEPTED, () => Promise.reject(new StoreError('gone')));
    const { went, error } = await authorized(free(), mandates);
    assert.deepEqual([went, error?.code, error?.retryable], [false, 'AUTHORIZATION_PROVIDER_UNAVAILABLE', true]);
    const name = asked.at(-2)?.split(' ')[1];
    assert.deepEqual(asked.slice(-2), [`reserve ${name}`, `release ${name}`]);
  });

  it('finishing never fails the call, however the register fails', async () => {
    const call = free();
    const { mandates } = scriptedMandates(ACCEPTED);
    let finishes = 0;
    const finish = async () => {
      finishes += 1;
      throw new StoreError('gone');
    };
    await authorized(call, { ...mandates, register: { ...mandates.register, finish } });
    const { authorization } = call.call<FundedCall>();
    assert.ok(authorization?.finish);
    await assert.doesNotReject(authorization.finish('commit'));
    assert.equal(finishes, 1);
  });
});

/** `message` of schemas/error.schema.json. */
const MOST_CHARACTERS = 300;

describe('the message for a refused mandate', () => {
  const { mandates } = scriptedMandates(ACCEPTED);
  const journal = { record: () => undefined } as unknown as Parameters<typeof unauthorized>[0]['journal'];
  const errorFor = (reason: Reason) =>
    unauthorized({ journal }, mandates, purchaseWith(), { reason, reference: undefined, issuer: undefined });
  const reasons = Object.keys(REASONS) as Reason[];

  it('is a sentence of its own for every reason, short enough for the error envelope', () => {
    const messages = new Set<string>();
    for (const reason of reasons) {
      const { message, details } = errorFor(reason);
      assert.equal(details?.reason, reason);
      assert.ok(message.length <= MOST_CHARACTERS, `${reason}: ${message.length}`);
      assert.match(message, /^[\x20-\x7e]+\.$/, reason);
      messages.add(message);
    }
    assert.equal(messages.size, reasons.length);
  });

  it('names the fresh checkout only where one comes with the answer, and would help', () => {
    const again = /Make one for the fresh checkout in authorization\.$/;
    for (const reason of ['checkout_expired', 'input_mismatch', 'replayed'] as const)
      assert.match(errorFor(reason).message, again);
    for (const reason of ['untrusted_issuer', 'unknown_key', 'open_mandate_spent', 'budget_exceeded'] as const)
      assert.doesNotMatch(errorFor(reason).message, again);
    assert.doesNotMatch(errorFor('provider_unavailable').message, /authorization/);
  });
});

const { mandates } = scriptedMandates(ACCEPTED);
const accepted = { mandated: ACCEPTED } as const;
const expired = { mandated: EXPIRED } as const;

const mandateOf = (call: ReturnType<typeof provenCall>) => paymentMandate(call.call<ProvenCall>(), mandates);

describe('what a mandate adds to a settlement request', () => {
  it('its claim, to be reserved with the payment', () => {
    const { terms } = mandateOf(provenCall(accepted));
    assert.deepEqual(readStoredMandate(terms.mandate ?? '')?.claim, ACCEPTED.claim);
  });

  it('nothing where none is required, nor of a refused one, and the journal as it is', () => {
    for (const call of [provenCall(), provenCall(expired)]) {
      const { terms, journal } = mandateOf(call);
      assert.deepEqual([terms, journal], [{}, call.call<ProvenCall>().journal]);
    }
  });

  it('one event, right before the first of the payment, and none on a resume', () => {
    const [paid, resumed] = [provenCall(accepted), provenCall(accepted)];
    const { journal } = mandateOf(paid);
    journal.record('payment.verified');
    journal.record('payment.settled');
    assert.deepEqual(paid.types(), ['authorization.verified', 'payment.verified', 'payment.settled']);
    mandateOf(resumed).journal.record('backend.called');
    assert.deepEqual(resumed.types(), ['backend.called']);
  });
});

describe('a settlement that failed for its mandate', () => {
  for (const [reason, code, status] of [
    ['replayed', 'AUTHORIZATION_REPLAYED', 409],
    ['budget_exceeded', 'AUTHORIZATION_INVALID', 403],
  ] as const)
    it(`${reason} meanwhile: the error of the reason`, () => {
      const call = provenCall(accepted);
      const error = mandateOf(call).failureOf({ kind: 'mandate_used', reason });
      assert.deepEqual([error?.code, error?.status, error?.details?.reason], [code, status, reason]);
      assert.equal(error?.details?.receipt, `rejected leaf ${reason}`);
      assert.deepEqual(call.types(), ['authorization.rejected']);
    });

  it('is not one whose payment was refused', () => {
    const owed = SafeToRechallenge.discarded({ kind: 'gone' }, 'insufficient_funds');
    for (const call of [accepted, {}])
      assert.equal(mandateOf(provenCall(call)).failureOf({ kind: 'refused', owed }), undefined);
  });
});

describe('the receipt of a settled call', () => {
  const record = { requestId: 'first', transaction: '0xabc', mandate: storedMandate(ACCEPTED) } as PaymentRecord;

  it('is for the mandate that the payment was admitted with, and names request and transaction', () => {
    for (const call of [accepted, expired])
      assert.equal(mandateOf(provenCall(call)).usedFor(record)?.receipt, 'accepted leaf first 0xabc');
  });

  const withReference = (reference: object | undefined) => ({
    mandated: { ...EXPIRED, reference },
  });
  for (const [title, call] of [
    ['another mandate', { mandated: { ...ACCEPTED, reference: 'other' } }],
    ['none that can be read', withReference(undefined)],
    ['other disclosures', withReference({ reference: 'leaf', referenceSdHash: 'leaf-with-one-more' })],
  ] as const)
    it(`is not given for ${title}; the gateway's own receipt names the right one`, () => {
      const used = mandateOf(provenCall(call)).usedFor(record);
      assert.deepEqual([used?.receipt, used?.summary.reference], [undefined, 'leaf']);
    });

  it('is nothing for a payment without a mandate, nor where none is required', () => {
    const { mandate: _, ...plain } = record;
    assert.equal(mandateOf(provenCall(accepted)).usedFor(plain), undefined);
    assert.equal(mandateOf(provenCall()).usedFor(record), undefined);
  });
});
