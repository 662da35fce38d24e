/** Calls at each stage for the specs of the middleware, and a mandate service that is scripted. */

import type { RequestHandler, Response } from 'express';
import type { GatewayError } from '../../src/errors.ts';
import type { EventDraft } from '../../src/events/event.ts';
import { openJournal } from '../../src/events/journal.ts';
import type { AcceptedMandate, MandateVerdict, RefusedMandate } from '../../src/mandates/ap2/reasons.ts';
import type { MandateService } from '../../src/mandates/ap2/verify.ts';
import type { MandateClaim, Used } from '../../src/mandates/register.ts';
import type { Challenge } from '../../src/payments/x402/wire/challenge.ts';
import type { Offers } from '../../src/payments/x402/wire/offers.ts';
import { type Call, currentCall, type ResponseWriter } from '../../src/pipeline/call.ts';
import { createSelling } from '../../src/pipeline/middleware/challenge.ts';

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

/** A mandate service with one verdict, and a list of what it was asked. */
export function scriptedMandates(
  verdict: MandateVerdict,
  reserve: () => Promise<Used> = async () => ({ kind: 'reserved' }),
) {
  const asked: string[] = [];
  const mandates: MandateService = {
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
  return { mandates, asked };
}

const PRICE = {
  requirements: {
    scheme: 'exact',
    extra: {},
    network: 'eip155:1',
    asset: '0xasset',
    payTo: '0xpayee',
    amount: '10000',
    maxTimeoutSeconds: 60,
  },
  amount: '0.01',
  currency: 'TUSD',
} as const;

const challengeWith = (body: string): Challenge => ({
  shown: [PRICE],
  body,
  header: '',
  leftOut: [],
  document: '',
  terse: { document: '', tokenOnly: '' },
  authorization: undefined,
  refusal: undefined,
  message: '',
});

export const OFFERS = new Map([
  [
    'report',
    {
      ...PRICE,
      others: [],
      issueToken: () => 'token',
      challenge: {
        shown: [PRICE],
        lastsSeconds: 60,
        fresh: () => challengeWith('fresh'),
        refused: (_facts: object, error: object) => challengeWith(JSON.stringify(error)),
      },
    },
  ],
]) as unknown as Offers;
export const SELLING = createSelling(OFFERS as unknown as Offers);

const BACKEND = {
  method: 'GET',
  idempotent: false,
  timeoutMs: 1_000,
  maxResponseBytes: 1_000,
  relayStatuses: { sold: [], unpaid: [] },
  headers: {},
};
export const RESOURCE = {
  id: 'report',
  name: 'Report',
  pricing: { type: 'fixed' },
  authorization: [],
  backend: BACKEND,
  compile: () => false,
};

/** A call of a response, with the events that it records and what its response writer wrote. */
export function callAt(stage: Call['stage'], more: object = {}) {
  const events: EventDraft[] = [];
  const written: unknown[] = [];
  const journal = openJournal(
    { requestId: 'r', callId: 'c', resourceId: 'report', adapter: 'http' },
    { push: (event) => void events.push(event), withdraw: () => [] },
  );
  const responseWriter: ResponseWriter = {
    maxAnswerBytes: 1_000,
    paymentRequired: ({ body }, payment) => void written.push(['402', body, payment]),
    failed: (error, context) => void written.push([error.code, context]),
    relay: async ({ status }, options) => {
      written.push([status, options]);
      return { kind: 'finished' };
    },
  };
  const call = {
    stage,
    requestId: 'r',
    callId: 'c',
    channel: 'http',
    resourceId: 'report',
    resource: RESOURCE,
    input: {},
    request: { method: 'GET', path: '/', headers: {}, body: undefined },
    trace: { traceparent: undefined, tracestate: undefined },
    proof: { kind: 'header', value: 'proof' },
    mandate: { kind: 'text', value: 'm' },
    startedAt: performance.now(),
    left: new AbortController().signal,
    journal,
    responseWriter,
    ...more,
  };
  const res = { locals: { call } } as unknown as Response;
  const recorded = (): readonly EventDraft[] => {
    journal.flush();
    return events;
  };
  return {
    res,
    written,
    events: recorded,
    types: () => recorded().map(({ type }) => type),
    /** As a middleware left it. */
    call: <C extends Call>() => currentCall(res) as C,
  };
}

export const PAY_ID = 'ab'.repeat(32);
const SIGNED = { from: '0xpayer', to: '0xpayee', value: '10000', validAfter: '0', validBefore: '9', nonce: '0x55' };

/** A call whose proof was verified. */
export function proven(more: object = {}) {
  const payment = {
    payId: PAY_ID,
    signedBy: 'account',
    payload: { payload: { signature: '0x', authorization: SIGNED } },
  };
  return callAt('proven', { payment, agreed: OFFERS.get('report'), ...more });
}

export function free(more: object = {}) {
  return callAt('funded', { funding: { kind: 'free' }, ...more });
}

/** Passes a call through a middleware. `went`: the next one was called. */
export async function passed(middleware: RequestHandler, res: Response) {
  let went = false;
  const error = await Promise.resolve()
    .then(() => middleware({} as never, res, () => (went = true)))
    .then(
      () => undefined,
      (thrown: unknown) => thrown as GatewayError,
    );
  return { went, error };
}
