/**
 * Asks the ledger before a call with a proof is refused, for whatever reason: a payment that is
 * known is answered by its record, which has the request and the terms (contract 4.3).
 */

import type { ErrorRequestHandler, Request } from 'express';
import { type BackendRequest, NONE_RELAYED } from '../backend/backend-exchange.ts';
import { GatewayError } from '../errors.ts';
import { protocolOf } from '../events/event.ts';
import { type EventSink, openJournal } from '../events/journal.ts';
import type { FindKnown, KnownPayment } from '../payments/settlement/known-payment.ts';
import { NEVER_ANEW } from '../payments/settlement/settlement-request.ts';
import type { OpenQuestion, ProofVerifier } from '../payments/settlement/verifier.ts';
import { withoutReserved } from '../resources/backend-request.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import type { Resource } from '../resources/resource.ts';
import { StoreError } from '../store/port/store-error.ts';
import { advanceCall, type Collecting, currentCall, type PreparedCall, type ProvenCall } from './call.ts';

/** The settings of calls to the backend for a removed resource, with the backend's headers. */
export type RemovedBackend = Pick<Resource['backend'], 'timeoutMs' | 'maxResponseBytes' | 'headers'>;

/** The settings of calls to the backend for purchases of a removed or changed resource. */
export function backendOfRemoved(method: BackendRequest['method'], removed: RemovedBackend): Resource['backend'] {
  return { ...removed, method, path: '', idempotent: false, relayStatuses: NONE_RELAYED };
}

/** A refusal whose own effects happen only where no record answers the call. */
export class PendingRefusal extends Error {
  readonly refuse: Collecting['refuse'];
  /** The reason against any new step in the settlement of the known payment. */
  readonly reason: string;

  constructor(refuse: Collecting['refuse'], reason: string = NEVER_ANEW) {
    super('a refusal that waits for the ledger');
    this.refuse = refuse;
    this.reason = reason;
  }
}

/** The call as it was when it was paid. */
type Bought = Pick<PreparedCall, 'resource' | 'journal' | 'input' | 'request'>;
type Refusable = Collecting['before'];

interface CollectorParts {
  readonly find: FindKnown;
  readonly verifier: Pick<ProofVerifier, 'verifyKnown'>;
  /** The network that a request counts against. */
  readonly networkOf: (req: Request) => string;
  readonly catalogue: Pick<Catalogue, 'byId'>;
  readonly events: EventSink;
  readonly removed: RemovedBackend;
}

/** Lets a refused call collect the answer that it has paid for. */
export interface Collector {
  /**
   * Stands behind the steps that refuse: the call goes on to `settle` where its payment is known,
   * else the refusal stands. A store that does not answer is STORAGE_ERROR.
   */
  readonly refused: ErrorRequestHandler;
  /**
   * The same call with the request that its proof bought; undefined: it bought something else.
   * @throws GatewayError STORAGE_ERROR
   */
  asBought(call: ProvenCall): Promise<ProvenCall | undefined>;
}

export function createCollector(parts: CollectorParts): Collector {
  const { find, verifier, networkOf, catalogue, events, removed } = parts;

  /**
   * The known payment of a call, and the call as it was paid, if its caller may have the answer.
   */
  const known = async (call: Refusable): Promise<{ payment: KnownPayment; bought: Bought | undefined } | undefined> => {
    const { resourceId, channel, requestId, callId, proof, idempotencyKey } = call;
    const input = withoutReserved(call.input);
    const payment = await find({
      ...{ resourceId, proof, input, callerHeaders: call.inPlace?.callerHeaders },
      idempotencyKey: typeof idempotencyKey === 'string' ? idempotencyKey : undefined,
    }).catch(throwStorageError);
    if (payment.kind === 'none') return undefined;
    const { record, request } = payment;
    const adapter = protocolOf(channel);
    // One channel does not show the sales of another. The backend's own address counts as HTTP: the
    // address is gone with its resource.
    if (request === undefined || (call.stage === 'received' && protocolOf(record.channel) !== adapter))
      return { payment, bought: undefined };
    const now = catalogue.byId.get(resourceId);
    const backend =
      now?.backend.method === request.method ? now.backend : backendOfRemoved(request.method, now?.backend ?? removed);
    const { amount, currency, units } = record;
    const journal =
      call.stage === 'received' ? openJournal({ requestId, callId, resourceId, adapter }, events) : call.journal;
    if (call.stage === 'received') journal.record('resource.requested');
    const bought: Bought = {
      resource: {
        ...{ id: resourceId, name: now?.name ?? resourceId, backend },
        pricing: { type: 'fixed', amount, currency, units: BigInt(units) },
        // A call that was not prepared needs no mandate now: the check came before the payment.
        authorization: served(call)?.resource.authorization ?? [],
      },
      ...{ journal, input },
      request: { ...request, headers: { ...backend.headers, ...request.headers } },
    };
    return { payment, bought };
  };

  const collecting = async (
    call: Refusable,
    req: Request,
    { refuse, reason }: PendingRefusal,
  ): Promise<ProvenCall | undefined> => {
    if (call.stage === 'proven' && call.collecting !== undefined) return { ...call, refusal: NEVER_ANEW };
    const { payment, bought } = (await known(call)) ?? {};
    // A caller without the secret, or with another purchase, learns nothing of a resource that is
    // not served today. For a served one the record answers all the same, and not the refusal.
    const asked = bought === undefined ? served(call) : { ...call, ...bought };
    if (payment === undefined || asked === undefined) return undefined;
    const signed =
      call.stage === 'proven'
        ? ({ kind: 'genuine', proof: call.payment } as const)
        : await verifier.verifyKnown(payment, networkOf(req));
    if (signed.kind === 'refused') return undefined;
    if (signed.kind !== 'genuine') throw unanswered(signed);
    const { agreed, token } = payment;
    return {
      ...asked,
      ...{ stage: 'proven', payment: signed.proof, agreed, token, refusal: reason },
      idempotencyKey: oneKey(call.idempotencyKey, payment.proof.paymentIdentifier),
      collecting: { before: call, refuse },
    };
  };

  return {
    refused(thrown, req, res, next) {
      const call = currentCall(res);
      const refusal = pending(thrown);
      if (refusal === undefined || call === undefined || call.stage === 'funded' || call.stage === 'answered') {
        next(thrown);
        return;
      }
      const answer = async (): Promise<void> => {
        const collects = await collecting(call, req, refusal);
        if (collects === undefined) {
          refusal.refuse({ kind: 'none' });
          return;
        }
        advanceCall(res, collects);
        next();
      };
      answer().catch(next);
    },
    async asBought(call) {
      const { bought } = (await known(call)) ?? {};
      return bought && { ...call, ...bought };
    },
  };
}

/** The call, if today's configuration serves it; undefined: it was refused unprepared. */
export function served(call: Refusable): PreparedCall | ProvenCall | undefined {
  return call.stage === 'prepared' || call.stage === 'proven' ? call : undefined;
}

/** Undefined for a bug, which no record answers. */
function pending(thrown: unknown): PendingRefusal | undefined {
  if (!(thrown instanceof GatewayError)) return thrown instanceof PendingRefusal ? thrown : undefined;
  return new PendingRefusal(() => {
    throw thrown;
  });
}

/** The refusal of a call whose signature could not be verified now. */
export function unanswered(question: OpenQuestion): GatewayError {
  if (question.kind === 'unavailable')
    return new GatewayError('PAYMENT_PROVIDER_UNAVAILABLE', { cause: question.cause });
  return new GatewayError('GATEWAY_BUSY', {
    message: 'Too many signatures of contract wallets are being verified. Send the same request again.',
  });
}

/** For a `catch`: a StoreError becomes STORAGE_ERROR, everything else is thrown as it is. */
export function throwStorageError(thrown: unknown): never {
  throw thrown instanceof StoreError ? new GatewayError('STORAGE_ERROR', { cause: thrown }) : thrown;
}

/** 1 to 255 printable ASCII characters. */
const KEY = /^[\x20-\x7e]{1,255}$/;

/**
 * The one key of a paid call: the header's, or the payment-identifier of its proof.
 * @throws GatewayError INPUT_INVALID
 */
export function oneKey(header: PreparedCall['idempotencyKey'], identifier: string | undefined): string | undefined {
  if (header === undefined) return identifier;
  if (typeof header !== 'string' || !KEY.test(header))
    throw refused(
      'idempotency_key_malformed',
      'Idempotency-Key must come once, with 1 to 255 printable ASCII characters.',
    );
  if (identifier !== undefined && identifier !== header)
    throw refused('idempotency_keys_differ', 'Idempotency-Key and the payment-identifier of the proof must be equal.');
  return header;
}

function refused(reason: string, message: string): GatewayError {
  return new GatewayError('INPUT_INVALID', { message, details: { reason } });
}
