import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import type { PaymentTerms } from '../../../src/payments/ledger/ledger.ts';
import { paymentReceiptId } from '../../../src/payments/ledger/payment-receipt.ts';
import { assertTerms } from '../../../src/payments/ledger/table.ts';
import {
  keyDigest,
  newToken,
  paymentTerms,
  readStoredRequest,
  storedRequest,
  tokenDigest,
  tokenId,
  whatIsBought,
} from '../../../src/payments/settlement/terms.ts';
import { compileOffers } from '../../../src/payments/x402/wire/offers.ts';
import { RECEIPT_ID } from '../../../src/receipts/receipt.ts';
import { freshAccount, genuineProof, PRICE_UNITS, termsFor } from '../x402/signing.ts';
import { tokensUnder } from './tokens.ts';

const x402 = termsFor();
const pricing = { type: 'fixed', amount: '0.01', currency: 'TUSD', units: PRICE_UNITS } as const;
const report = {
  ...{ id: 'report', name: 'Report', description: undefined, mimeType: 'application/json', pricing },
  backend: { timeoutMs: 10_000 },
};
const backend = { publicBaseUrl: 'https://shop.example' };
const offer =
  compileOffers({ merchant: backend, resources: [report], x402 }, tokensUnder()).get('report') ?? assert.fail();
const payment = await genuineProof(freshAccount(), x402);

function termsOf(names: { readonly idempotencyKey?: string; readonly token?: string }): PaymentTerms {
  const request = { method: 'GET', path: '/report', headers: {}, body: undefined } as const;
  const call = {
    requestId: 'req_1',
    callId: 'call_1',
    channel: 'a2a',
    resource: report,
    request,
    input: {},
    payment,
  } as const;
  const { idempotencyKey } = names;
  const token = names.token === undefined ? undefined : { text: names.token, genuineForMs: 1 };
  const terms = paymentTerms({ ...call, idempotencyKey, token }, offer);
  // What no ledger would take is no terms.
  return assertTerms({ ...terms, proofDigest: 'digest' });
}

describe('the receipt of a purchase', () => {
  it('has the id that follows from the authorization alone', () => {
    const { authorization } = payment.payload.payload;
    const expected = paymentReceiptId(payment.payId, Number(authorization.validBefore), x402.maxTimeoutSeconds);
    assert.equal(termsOf({}).receiptId, expected);
    assert.equal(termsOf({ idempotencyKey: 'another call' }).receiptId, expected);
    assert.match(expected, RECEIPT_ID);
  });

  it('sorts by the time of the authorization, whatever its value', () => {
    const ids = [0, 1, 1_800_000_000, 1_800_000_001, 2 ** 50].map((validBefore) =>
      paymentReceiptId(payment.payId, validBefore, 120),
    );
    assert.deepEqual(ids.toSorted(), ids);
    for (const id of ids) assert.match(id, RECEIPT_ID);
  });
});

describe('how a purchase is recognised when it is asked for again', () => {
  const { payId } = payment;

  it('by its key, by the token of the challenge, by either when both came, or by nothing', () => {
    for (const [idempotencyKey, token] of [['name', undefined], [undefined, 'name'], ['name', 'token'], []] as const) {
      const made = termsOf({ ...(idempotencyKey && { idempotencyKey }), ...(token && { token }) });
      const key = idempotencyKey && keyDigest(payId, idempotencyKey);
      assert.deepEqual([made.keyDigest, made.tokenDigest], [key, token && tokenDigest(payId, token)]);
    }
  });

  it('a key and a token of the same letters are two, of two payments four', () => {
    const other = '0'.repeat(64);
    const digests = [payId, other].flatMap((id) => [keyDigest(id, 'name'), tokenDigest(id, 'name')]);
    assert.equal(new Set(digests).size, 4);
    assert.notEqual(keyDigest('a', 'b'), keyDigest('ab', ''), 'the border between payment and key counts');
    for (const digest of digests) assert.match(digest, /^[0-9a-f]{64}$/);
  });

  it('a token becomes the secret of a new record while it is genuine', () => {
    assert.deepEqual(newToken({ token: { text: 'name', genuineForMs: 7 } }), {
      kind: 'issued',
      id: tokenId('name'),
      forMs: 7,
    });
    assert.deepEqual(newToken({ token: { text: 'name', genuineForMs: 0 } }), { kind: 'worthless' });
    assert.equal(newToken({ token: undefined }), undefined);
  });
});

describe('what is bought', () => {
  const request = { method: 'GET' } as const;
  const bound = (callerHeaders?: Readonly<Record<string, string>>): string =>
    whatIsBought('report', callerHeaders === undefined ? request : { ...request, callerHeaders }, { city: 'Berlin' });

  it('has the same name in every release and on every channel that brings no headers', () => {
    const text = 'report\0GET\0{"city":"Berlin"}';
    assert.equal(bound(), createHash('sha256').update(text).digest('hex'));
    assert.equal(bound({}), bound());
  });

  it('has another name for every header that the caller brought', () => {
    const names = [
      undefined,
      { cookie: 'a' },
      { cookie: 'b' },
      { authorization: 'a' },
      { authorization: 'a', cookie: 'a' },
    ];
    assert.equal(new Set(names.map(bound)).size, names.length);
    assert.equal(bound({ cookie: 'a', authorization: 'b' }), bound({ authorization: 'b', cookie: 'a' }));
  });
});

describe('the stored backend request', () => {
  const request = { method: 'GET', path: '/r', headers: { 'x-key': 'secret' }, body: undefined } as const;

  it('keeps the headers of its caller and not the configured ones', () => {
    const stored = storedRequest({ ...request, callerHeaders: { cookie: 'a=b' } });
    assert.ok(!stored.includes('secret'));
    const read = readStoredRequest(stored, { 'x-key': 'now' });
    assert.deepEqual([read.callerHeaders, read.headers], [{ cookie: 'a=b' }, { 'x-key': 'now' }]);
  });

  it('of a caller that brought none has none', () => {
    assert.deepEqual(readStoredRequest('{"method":"GET","path":"/r"}', {}), { ...request, headers: {} });
    assert.equal(storedRequest({ ...request, callerHeaders: {} }), '{"method":"GET","path":"/r"}');
  });
});
