import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import { FORGOTTEN } from '../../../src/payments/ledger/table.ts';
import { createFindKnown } from '../../../src/payments/settlement/known-payment.ts';
import { paymentTerms } from '../../../src/payments/settlement/terms.ts';
import { proofDigest } from '../../../src/payments/x402/verify/verify.ts';
import { encodeProof } from '../../../src/payments/x402/wire/header-codec.ts';
import { BUYER_TOKEN } from '../../../src/payments/x402/wire/payload-schema.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { freshAccount, freshAddress, genuineProof, offerFor, RESOURCE_URL, termsFor } from '../x402/signing.ts';
import { TERMS, tokensUnder } from './tokens.ts';

const money = termsFor();
const account = freshAccount();
const payment = await genuineProof(account, money);
const { payId } = payment;
const [token, other] = [tokensUnder().issue(undefined, TERMS), tokensUnder().issue(undefined, TERMS)];
const requirements = offerFor(money);
const agreed = { requirements, resourceUrl: RESOURCE_URL, amount: '0.01', currency: 'TUSD' };
const request = { method: 'POST', path: '/then?city=a', headers: {}, body: undefined } as const;
const bought: Parameters<typeof paymentTerms>[0] = {
  ...{ requestId: 'r', callId: 'c', resource: { id: 'report' }, input: { city: 'a' }, payment },
  channel: 'http',
  request: { ...request, callerHeaders: { cookie: 'a' } },
  idempotencyKey: undefined,
  token: { text: token, genuineForMs: 1 },
};
const recordOf = (call: typeof bought, more: object = {}) =>
  ({
    ...paymentTerms(call, agreed),
    state: 'undelivered',
    proofDigest: proofDigest(payment),
    ...more,
  }) as PaymentRecord;

const scope = { ...money, publicBaseUrl: 'https://shop.example' };
const carried = (echoed: string | undefined = token, payload: object = payment.payload) => {
  const extensions = { [BUYER_TOKEN]: { info: { token: echoed } } };
  return { kind: 'header', value: encodeProof({ ...payload, extensions } as never) } as const;
};
const asked = {
  ...{ resourceId: 'report', input: { city: 'a' }, callerHeaders: { cookie: 'a' } },
  ...{ proof: carried(), idempotencyKey: undefined },
};
/** What is found of a call in a ledger with one record. */
const found = (more: object = {}, record = recordOf(bought), money = scope) =>
  createFindKnown({ read: async (id) => (id === record.payId ? record : undefined) }, money)({ ...asked, ...more });

describe('the payment of a proof', () => {
  it('with the call and the secret that it was bought with: its record, request and terms', async () => {
    const known = await found();
    assert.ok(known.kind === 'known');
    assert.equal(known.record.payId, payId);
    assert.deepEqual(known.request, { ...request, callerHeaders: { cookie: 'a' } });
    assert.deepEqual(known.agreed, agreed);
    assert.deepEqual([known.token?.text, known.token?.genuineForMs], [token, 0]);
  });

  for (const [what, more] of Object.entries({
    'without the secret': { proof: carried('none') },
    'with the secret of another': { proof: carried(other) },
    'for another input': { input: { city: 'b' } },
    'for other headers of its caller': { callerHeaders: {} },
    'for another resource': { resourceId: 'other' },
  }))
    it(`${what}: its record, and nothing of what was bought`, async () => {
      const known = await found(more);
      assert.deepEqual(known.kind === 'known' && [known.record.payId, known.request], [payId, undefined]);
    });

  it('with a key opens by it alone', async () => {
    const record = recordOf({ ...bought, idempotencyKey: 'key', token: undefined });
    for (const [idempotencyKey, opens] of [
      ['key', true],
      ['other', false],
      [undefined, false],
    ] as const) {
      const known = await found({ idempotencyKey }, record);
      assert.equal(known.kind === 'known' && known.request !== undefined, opens);
    }
  });

  it('that is over has no request, and terms as far as they are in clear', async () => {
    const known = await found({}, recordOf(bought, { state: 'delivered', ...FORGOTTEN }));
    assert.ok(known.kind === 'known');
    assert.deepEqual([known.request?.method, known.request?.path], ['POST', '/']);
    assert.partialDeepStrictEqual(known.agreed.requirements, {
      amount: requirements.amount,
      payTo: requirements.payTo,
    });
  });

  it('that is sealed with another key is known, and its request is not', async () => {
    const sealed = 'sealed:1:none:none';
    const known = await found({}, recordOf(bought, { proof: sealed, backendRequest: sealed }));
    assert.deepEqual(known.kind === 'known' && known.request, undefined);
  });

  it('of the network or asset that the proof accepts is found where these are others by now', async () => {
    for (const change of [{ chainId: 1 }, { asset: freshAddress() }])
      assert.equal((await found({}, recordOf(bought), { ...scope, ...change })).kind, 'known');
  });

  it('is none without a record, and is not asked for where no proof can be read', async () => {
    const read = async () => assert.fail('asked');
    assert.deepEqual(await found({}, recordOf(bought, { payId: 'another' })), { kind: 'none' });
    for (const proof of [{ kind: 'none' }, { kind: 'illegible' }, { kind: 'header', value: 'bm9uZQ==' }] as const)
      assert.deepEqual(await createFindKnown({ read }, scope)({ ...asked, proof }), { kind: 'none' });
  });

  it('of a store that does not answer is an error', async () => {
    const read = () => Promise.reject(new StoreError('gone'));
    await assert.rejects(createFindKnown({ read }, scope)(asked), StoreError);
  });
});
