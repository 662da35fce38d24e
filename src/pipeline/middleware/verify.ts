/** Checks the payment proof locally, cheap checks first (contract 4.2, steps 1 to 4). */

import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import type { MandateService } from '../../mandates/mandate-service.ts';
import { SafeToRechallenge } from '../../payments/settlement/safe-to-rechallenge.ts';
import { NEVER_ANEW } from '../../payments/settlement/settlement-request.ts';
import type { ProofVerifier } from '../../payments/settlement/verifier.ts';
import type { NoteProof } from '../../server/load-shedding/proof-standing.ts';
import type { ClientOf } from '../../server/rate-limit/client-address.ts';
import { advanceCall, callAt, type PreparedCall } from '../call.ts';
import { notCollected } from '../steps/collecting.ts';
import { requirePayment, type Selling } from '../steps/payment-required.ts';
import { throwStorageError } from '../steps/storage-error.ts';

/** 1 to 255 printable ASCII characters (contract 4.4). */
const KEY = /^[\x20-\x7e]{1,255}$/;

/** Nothing is written and no money moves here. */
export function verify(
  selling: Selling,
  verifier: ProofVerifier,
  { networkOf, noteProof }: { readonly networkOf: ClientOf; readonly noteProof: NoteProof },
  mandates?: MandateService,
): RequestHandler {
  return async function verifyMiddleware(req, res, next) {
    const call = callAt(res, 'prepared', 'funded');
    if (call.stage === 'funded') {
      next();
      return;
    }
    const { collecting } = call;
    const offer = collecting?.agreed ?? selling.offer(call.resource.id);
    const verdict = await verifier.verify(call.proof, offer, networkOf(req)).catch(throwStorageError);
    if (verdict.kind === 'refused') {
      noteProof(req, 'refused');
      if (collecting !== undefined) throw notCollected(res, collecting);
      const owed = SafeToRechallenge.unreserved(verdict.reason, verdict.answerOf, verdict.fault);
      requirePayment(call, selling.offerTo(req, call.resource.id, owed), owed, mandates);
      return;
    }
    if (verdict.kind === 'crowded')
      throw new GatewayError('GATEWAY_BUSY', {
        message: 'Too many signatures of contract wallets are being verified. Send the same request again.',
      });
    if (verdict.kind === 'unavailable')
      throw new GatewayError('PAYMENT_PROVIDER_UNAVAILABLE', { cause: verdict.cause });
    const { proof, key, token } = verdict;
    const refusal = collecting === undefined ? verdict.refusal : NEVER_ANEW;
    const idempotencyKey = oneKey(call.idempotencyKey, key);
    const agreed = collecting?.agreed ?? verdict.agreed;
    advanceCall(res, { ...call, stage: 'proven', payment: proof, agreed, refusal, idempotencyKey, token });
    next();
  };
}

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
