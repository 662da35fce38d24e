/** Checks the payment proof locally, cheap checks first (contract 4.2, steps 1 to 4). */

import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import type { MandateService } from '../../mandates/ap2/verify.ts';
import { SafeToRechallenge } from '../../payments/settlement/safe-to-rechallenge.ts';
import { recordRejection } from '../../payments/settlement/settlement-writes.ts';
import { whatIsBought } from '../../payments/settlement/terms.ts';
import type { ProofVerifier } from '../../payments/settlement/verifier.ts';
import type { Offer } from '../../payments/x402/wire/offers.ts';
import type { ClientOf } from '../../server/limits/client-address.ts';
import type { NoteProof } from '../../server/limits/load-shedder.ts';
import { advanceCall, callAt } from '../call.ts';
import { oneKey, PendingRefusal, unanswered } from '../collecting.ts';
import { requirePayment, type Selling } from './challenge.ts';

/** Nothing is written and no money moves here. */
export function verify(
  selling: Selling,
  verifier: Pick<ProofVerifier, 'verify' | 'priceShown'>,
  { networkOf, noteProof }: { readonly networkOf: ClientOf; readonly noteProof: NoteProof },
  mandates?: MandateService,
): RequestHandler {
  return async function verifyMiddleware(req, res, next) {
    const call = callAt(res, 'prepared', 'proven', 'funded');
    if (call.stage !== 'prepared') {
      next();
      return;
    }
    const { id } = call.resource;
    const bind = (): string => whatIsBought(id, call.request, call.input);
    let shown: bigint | undefined;
    const priced = async (): Promise<Offer> =>
      selling.offerFor(call, req, (lowest) => {
        shown = verifier.priceShown(call.proof, lowest, bind);
        return shown;
      });
    const lowest = selling.offer(id);
    const offer = lowest.byInput === undefined ? lowest : await priced();
    const verdict = await verifier.verify(call.proof, offer, networkOf(req), bind);
    if (verdict.kind === 'refused') {
      // A quote ends with its 402: the next one has the present price, not the one that was shown.
      const present = shown === undefined ? offer : await selling.offerAnew(call, req);
      throw new PendingRefusal((answer) => {
        noteProof(req, 'refused');
        const owed = SafeToRechallenge.unreserved(answer, verdict);
        requirePayment(call, selling.offerTo(req, id, present, owed), owed, mandates);
      }, verdict.reason);
    }
    if (verdict.kind === 'blocked')
      throw new PendingRefusal(() => {
        noteProof(req, 'refused');
        recordRejection(call.journal, 'payer_blocked', undefined);
        throw new GatewayError('PAYER_BLOCKED');
      });
    if (verdict.kind !== 'genuine') throw unanswered(verdict);
    const { proof, key, token, agreed, refusal } = verdict;
    const idempotencyKey = oneKey(call.idempotencyKey, key);
    const present = shown === undefined ? { offer } : {};
    advanceCall(res, { ...call, ...present, stage: 'proven', payment: proof, agreed, refusal, idempotencyKey, token });
    next();
  };
}
