import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import type { GatewayError } from '../../../src/errors.ts';
import type { MandateVerdict } from '../../../src/mandates/ap2/model/verdict.ts';
import type { MandateService } from '../../../src/mandates/mandate-service.ts';
import type { PaymentRecord, PaymentState } from '../../../src/payments/ledger/ledger.ts';
import type { FundedCall, ProvenCall } from '../../../src/pipeline/call.ts';
import { authorize } from '../../../src/pipeline/middleware/authorize.ts';
import { StoreError } from '../../../src/store/port/store.ts';
import { ACCEPTED, EXPIRED, free, OFFERS, proven, scriptedDesk } from './mandate-desk.ts';

const MISSING: MandateVerdict = {
  kind: 'refused',
  reason: 'mandate_required',
  reference: undefined,
  issuer: undefined,
};

/** Passes a call through the layer. `went`: it was let on. */
async function passed(
  { res }: { readonly res: Response },
  desk: MandateService,
  read: () => Promise<PaymentRecord | undefined> = async () => undefined,
): Promise<{ readonly went: boolean; readonly error: GatewayError | undefined }> {
  let went = false;
  const goOn = (): void => {
    went = true;
  };
  const layer = authorize(OFFERS, desk, { read });
  const error = await Promise.resolve(layer({} as never, res, goOn)).then(
    () => undefined,
    (thrown: unknown) => thrown as GatewayError,
  );
  return { went, error };
}

const inState = (state: PaymentState) => async () => ({ state }) as PaymentRecord;

describe('the mandate of a paid call', () => {
  it('accepted: goes on with it, and nothing was looked up or written', async () => {
    const call = proven();
    const { desk, asked } = scriptedDesk(ACCEPTED);
    const { went } = await passed(call, desk, () => assert.fail('the ledger was asked'));
    assert.deepEqual([went, asked], [true, ['verify text']]);
    assert.deepEqual((call.call() as ProvenCall).mandated, { kind: 'accepted', mandate: ACCEPTED });
    assert.deepEqual(call.events(), [], 'it is told with its payment');
  });

  it('refused: said with reason, part, receipt and a fresh challenge; one event', async () => {
    const call = proven();
    const { desk } = scriptedDesk({ ...EXPIRED, constraint: 'payment.budget' });
    const { went, error } = await passed(call, desk);
    assert.equal(went, false);
    assert.deepEqual([error?.code, error?.status, error?.retryable], ['AUTHORIZATION_INVALID', 403, false]);
    assert.deepEqual(error?.details, {
      reason: 'checkout_expired',
      mandate: 'checkout',
      constraint: 'payment.budget',
      receipt: 'rejected leaf checkout_expired',
    });
    assert.deepEqual(error.authorization, {
      required: [{ method: 'ap2', resourceId: 'report', amount: '0.01', currency: 'TUSD' }],
    });
    assert.deepEqual(
      call.events().map(({ type, data }) => ({ type, data })),
      [
        {
          type: 'authorization.rejected',
          data: { method: 'ap2', reason: 'checkout_expired', issuer: 'https://provider.example' },
        },
      ],
    );
  });

  it('missing: says what is required, and has nothing to receipt', async () => {
    const { error } = await passed(proven(), scriptedDesk(MISSING).desk);
    assert.equal(error?.code, 'AUTHORIZATION_REQUIRED');
    assert.deepEqual(error.details, { reason: 'mandate_required', required: ['ap2'], missing: ['ap2'] });
    assert.ok(error.authorization);
    assert.match(error.message, /Agent-Authorization.*_authorization/);
    assert.ok(error.message.length <= 300);
  });

  it('keys that cannot be had are not blamed on the buyer', async () => {
    const call = proven();
    const { error } = await passed(
      call,
      scriptedDesk({ ...MISSING, reason: 'provider_unavailable', cause: 'why' }).desk,
    );
    assert.deepEqual(
      [error?.code, error?.retryable, error?.cause],
      ['AUTHORIZATION_PROVIDER_UNAVAILABLE', true, 'why'],
    );
    assert.deepEqual([error?.headers['retry-after'], error?.details], ['1', { reason: 'provider_unavailable' }]);
    assert.deepEqual(call.events(), []);
  });

  for (const state of ['settling', 'withdrawn', 'settled', 'undelivered', 'delivered', 'refused', 'refundDue'] as const)
    it(`a payment that is ${state} was admitted with a mandate: its record answers`, async () => {
      for (const verdict of [EXPIRED, MISSING] as const) {
        const call = proven();
        const { went } = await passed(call, scriptedDesk(verdict).desk, inState(state));
        assert.equal(went, true);
        assert.deepEqual((call.call() as ProvenCall).mandated, { kind: 'unneeded', refused: verdict });
        assert.deepEqual(call.events(), []);
      }
    });

  it('a payment that is only reserved was not: its mandate may be another', async () => {
    const { went, error } = await passed(proven(), scriptedDesk(EXPIRED).desk, inState('reserved'));
    assert.deepEqual([went, error?.code], [false, 'AUTHORIZATION_INVALID']);
  });

  it('a store that does not say is a store that fails', async () => {
    const { error } = await passed(proven(), scriptedDesk(EXPIRED).desk, () => Promise.reject(new StoreError('gone')));
    assert.equal(error?.code, 'STORAGE_ERROR');
  });

  it('two that differ are not looked at', async () => {
    const { desk, asked } = scriptedDesk(ACCEPTED);
    const { error } = await passed(proven({ mandate: { kind: 'conflicting' } }), desk);
    assert.deepEqual([error?.code, error?.details?.reason, asked], ['INPUT_INVALID', 'mandates_differ', []]);
  });

  it('none is needed: none is looked at', async () => {
    const { desk, asked } = scriptedDesk(EXPIRED);
    const resource = { id: 'report', authorization: [] };
    assert.equal((await passed(proven({ resource }), desk)).went, true);
    assert.deepEqual(asked, []);
  });
});

describe('the mandate of a free call', () => {
  it('is reserved before anybody is asked, under a name that nobody chose', async () => {
    const [call, other] = [free(), free()];
    const { desk, asked } = scriptedDesk(ACCEPTED);
    await passed(call, desk);
    await passed(other, desk);
    const names = asked.filter((line) => line.startsWith('reserve')).map((line) => line.split(' ')[1]);
    assert.equal(new Set(names).size, 2, 'two calls under one request id');
    const { authorization } = call.call() as FundedCall;
    assert.deepEqual(authorization?.summary, {
      method: 'ap2',
      reference: 'leaf',
      metadata: {
        mandateIssuer: 'https://provider.example',
        checkoutIssuer: 'https://shop.example',
        checkoutId: 'checkout',
      },
    });
    assert.equal(authorization.receipt, 'accepted leaf r no payment');
    await authorization.finish?.('commit');
    assert.equal(asked.at(-1), `commit ${names[0]}`);
    assert.deepEqual(
      call.events().map(({ type, data }) => [type, data?.['mandateId']]),
      [['authorization.verified', 'closed']],
    );
  });

  it('used before: 409 with the receipt of the refusal, and not a word of acceptance', async () => {
    const call = free();
    const { desk } = scriptedDesk(ACCEPTED, async () => ({ kind: 'refused', reason: 'open_mandate_spent' }));
    const { went, error } = await passed(call, desk);
    assert.deepEqual([went, error?.code, error?.status], [false, 'AUTHORIZATION_REPLAYED', 409]);
    assert.equal(error?.details?.receipt, 'rejected leaf open_mandate_spent');
    assert.deepEqual(
      call.events().map(({ type }) => type),
      ['authorization.rejected'],
    );
  });

  it('over its budget: 403', async () => {
    const { desk } = scriptedDesk(ACCEPTED, async () => ({ kind: 'refused', reason: 'recurrence_too_soon' }));
    assert.equal((await passed(free(), desk)).error?.status, 403);
  });

  it('a register that is silent may have taken it, so it is given back', async () => {
    const { desk, asked } = scriptedDesk(ACCEPTED, () => Promise.reject(new StoreError('gone')));
    const { went, error } = await passed(free(), desk);
    assert.deepEqual([went, error?.code, error?.retryable], [false, 'AUTHORIZATION_PROVIDER_UNAVAILABLE', true]);
    assert.match(asked.at(-1) ?? '', /^release /);
    assert.equal(asked.at(-1)?.split(' ')[1], asked.at(-2)?.split(' ')[1]);
  });

  it('finishing never fails the call', async () => {
    const call = free();
    const { desk } = scriptedDesk(ACCEPTED);
    const silent = { ...desk.register, finish: () => Promise.reject(new StoreError('gone')) };
    await passed(call, { ...desk, register: silent });
    await (call.call() as FundedCall).authorization?.finish?.('commit');
  });
});
