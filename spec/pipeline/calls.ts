import type { Response } from 'express';
import type { EventDraft } from '../../../src/events/event.ts';
import { openJournal } from '../../../src/events/journal.ts';
import type { AcceptedMandate, MandateVerdict, RefusedMandate } from '../../../src/mandates/ap2/model/verdict.ts';
import type { MandateService } from '../../../src/mandates/mandate-service.ts';
import type { MandateClaim, Used } from '../../../src/mandates/register/register.ts';
import type { Offers } from '../../../src/payments/x402/wire/offers.ts';
import { type Call, currentCall, type FundedCall, type ProvenCall } from '../../../src/pipeline/call.ts';

const CLAIM: MandateClaim = { at: 1_000, once: ['m:closed', 'j:checkout'], onceUntil: 2_000, open: [] };

export const ACCEPTED: AcceptedMandate = {
  kind: 'accepted',
  mode: 'autonomous',
  issuer: 'https://provider.example',
  mandateId: 'closed',
  reference: 'leaf',
  referenceSdHash: 'leaf-with-disclosures',
  checkoutIssuer: 'https://shop.example',
  checkoutId: 'checkout',
  claim: CLAIM,
};

export const EXPIRED: RefusedMandate = {
  kind: 'refused',
  reason: 'checkout_expired',
  mandate: 'checkout',
  reference: { reference: 'leaf', referenceSdHash: 'leaf-with-disclosures' },
  issuer: 'https://provider.example',
};

/** A desk that says what it is told to, and what it was asked. */
export function scriptedDesk(
  verdict: MandateVerdict,
  reserve: () => Promise<Used> = async () => ({ kind: 'reserved' }),
) {
  const asked: string[] = [];
  const desk: MandateService = {
    freeCurrency: 'TUSD',
    challenge: ({ resourceId, price }) => JSON.stringify({ required: [{ method: 'ap2', resourceId, ...price }] }),
    verify: async (carried) => {
      asked.push(`verify ${carried.kind}`);
      return verdict;
    },
    accepted: ({ reference }, { id, transaction = 'no payment' }) => `accepted ${reference} ${id} ${transaction}`,
    rejected: ({ reference }, reason) => `rejected ${reference} ${reason}`,
    register: {
      async reserve(name) {
        asked.push(`reserve ${name}`);
        return reserve();
      },
      async finish(name, how) {
        asked.push(`${how} ${name}`);
      },
    },
  };
  return { desk, asked };
}

export const OFFERS = new Map([
  [
    'report',
    {
      requirements: { network: 'eip155:1', asset: '0xasset', payTo: '0xpayee', maxTimeoutSeconds: 60 },
      amount: '0.01',
      currency: 'TUSD',
    },
  ],
]) as unknown as Offers;

const RESOURCE = { id: 'report', name: 'Report', authorization: ['ap2'], backend: { method: 'GET' } };

/** A call in a response's hands, with the events it makes. */
function inHand(call: object) {
  const events: EventDraft[] = [];
  const journal = openJournal(
    { requestId: 'r', resourceId: 'report', adapter: 'http' },
    { push: (event) => void events.push(event), withdraw: () => [] },
  );
  const common = { requestId: 'r', resource: RESOURCE, input: {}, mandate: { kind: 'text', value: 'm' }, journal };
  const res = { locals: { call: { ...common, ...call } } } as unknown as Response;
  const seen = (): readonly EventDraft[] => {
    journal.flush();
    return events;
  };
  return { res, journal, events: seen, call: () => currentCall(res) as Call };
}

export function proven(more: Partial<ProvenCall> | object = {}) {
  const authorization = { from: '0xpayer', nonce: '0x55' };
  return inHand({ stage: 'proven', payment: { payId: 'p', payload: { payload: { authorization } } }, ...more });
}

export function free(more: Partial<FundedCall> | object = {}) {
  return inHand({ stage: 'funded', funding: { kind: 'free' }, ...more });
}
