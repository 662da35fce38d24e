import type { Reading, Settled, Worthless } from '../../rail.ts';
import type { Proof } from '../wire/rail.ts';
import type { PaymentRequirements } from '../wire/types.ts';
import { VALID_BEFORE_EXCESS_SECONDS } from '../wire/window.ts';
import { type Chain, type Evidence, type EvidenceQuery, EXPIRED } from './chain.ts';

/** Clocks of chains and gateways differ: the search for a log begins this much earlier. */
const CLOCK_MARGIN_SECONDS = 600;

/** The question whether the chain shows this proof as paid. */
export function evidenceQuery(
  { payload }: Proof,
  offer: PaymentRequirements,
  knownTransaction?: string,
): EvidenceQuery {
  const { from, nonce, validBefore } = payload.payload.authorization;
  const ends = Number(validBefore);
  // No proof is accepted earlier than this before its end (window check), so it was not used earlier either.
  const since = ends - offer.maxTimeoutSeconds - VALID_BEFORE_EXCESS_SECONDS - CLOCK_MARGIN_SECONDS;
  const { asset, payTo, amount } = offer;
  return { asset, from, nonce, payTo, value: amount, validBefore: ends, since, knownTransaction };
}

/**
 * Whether the authorization pays exactly what the offer asks. The local checks said so when the proof came, but an authorization
 * with a record is let through to here whatever it says, and what is signed must never be sent for something else.
 */
export function paysOffer({ payload }: Proof, offer: PaymentRequirements): boolean {
  const { to, value } = payload.payload.authorization;
  return to.toLowerCase() === offer.payTo.toLowerCase() && BigInt(value) === BigInt(offer.amount);
}

/** The chain's evidence in the words of the rail. */
export async function readingOf(chain: Chain, query: EvidenceQuery): Promise<Reading> {
  const evidence = await chain.readEvidence(query);
  return decided(evidence) ?? (evidence.kind === 'unknown' ? evidence : { kind: 'open' });
}

/** What the chain shows for good; undefined while it can still change. */
export function decided(evidence: Evidence): Settled | Worthless | undefined {
  switch (evidence.kind) {
    case 'paid':
      return { kind: 'settled', evidence: 'logs', transaction: evidence.transaction };
    case 'worthless': {
      const { reason, transaction } = evidence;
      const how = reason === EXPIRED ? 'expired' : 'elsewhere';
      return { kind: 'refused', reason, evidence: how, ...(transaction === undefined ? {} : { transaction }) };
    }
    default:
      return undefined;
  }
}
