/** What both rails ask the chain about a proof, and the answer in the words of the rail. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Reading, Settled, Settlement, Worthless } from '../../rail.ts';
import { EXPIRED } from '../wire/reasons.ts';
import type { PaymentRequirements, Proof } from '../wire/types.ts';
import { VALID_BEFORE_EXCESS_SECONDS } from '../wire/window.ts';
import type { Chain, Evidence, EvidenceQuery } from './chain.ts';

/** The search for a log begins this much earlier, because clocks of chains and gateways differ. */
export const CLOCK_MARGIN_SECONDS = 600;
/** Pauses between readings, milliseconds: short at first, then at the pace of blocks. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** Looks up the authorization of this proof. */
export function evidenceQuery(
  { payload }: Proof,
  offer: PaymentRequirements,
  knownTransaction?: string,
): EvidenceQuery {
  const { from, nonce, validBefore } = payload.payload.authorization;
  const ends = Number(validBefore);
  const since = notUsedBefore(ends, offer.maxTimeoutSeconds);
  const { asset, payTo, amount } = offer;
  return { asset, from, nonce, payTo, value: amount, validBefore: ends, since, knownTransaction };
}

/**
 * Since when an authorization may have been used, Unix seconds: the window check refuses a proof
 * earlier than this before its end.
 */
export function notUsedBefore(validBefore: number, maxTimeoutSeconds: number): number {
  return validBefore - maxTimeoutSeconds - VALID_BEFORE_EXCESS_SECONDS - CLOCK_MARGIN_SECONDS;
}

/**
 * Whether the authorization pays exactly what the offer asks. The local checks compared that when
 * the proof came, but an authorization with a record reaches the rail without them, and what is
 * signed must never be sent for something else.
 */
export function paysOffer({ payload }: Proof, offer: PaymentRequirements): boolean {
  const { to, value } = payload.payload.authorization;
  return to.toLowerCase() === offer.payTo.toLowerCase() && BigInt(value) === BigInt(offer.amount);
}

/** The chain's evidence in the words of the rail; all but the known transaction is by others. */
export async function readingOf(chain: Chain, query: EvidenceQuery): Promise<Reading> {
  const evidence = await chain.readEvidence(query);
  return decided(evidence, query) ?? (evidence.kind === 'unknown' ? evidence : { kind: 'open' });
}

/** What the chain shows definitely; undefined while it can still change. */
export function decided(
  evidence: Evidence,
  { knownTransaction }: Pick<EvidenceQuery, 'knownTransaction'>,
): Settled | Worthless | undefined {
  switch (evidence.kind) {
    case 'paid': {
      const { transaction } = evidence;
      const by = transaction === knownTransaction ? {} : { by: 'others' as const };
      return { kind: 'settled', evidence: 'logs', transaction, ...by };
    }
    case 'worthless': {
      const { reason, transaction } = evidence;
      const how = reason === EXPIRED ? 'expired' : 'elsewhere';
      return { kind: 'refused', reason, evidence: how, ...(transaction === undefined ? {} : { transaction }) };
    }
    default:
      return undefined;
  }
}

/**
 * Reads the chain until it decides, the known transaction has failed in a block, or the wait is
 * over. `settled` and `refused` are what the chain shows; anything else stays `uncertain` with
 * `cause` and the known hash. A failed transaction does not make the authorization worthless:
 * anyone may still send that.
 */
export async function confirmPayment(
  chain: Chain,
  query: EvidenceQuery,
  waitMs: number,
  cause: string,
): Promise<Settlement> {
  const ends = performance.now() + waitMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const evidence = await chain.readEvidence(query);
    const shown = decided(evidence, query);
    if (shown !== undefined) return shown;
    const { knownTransaction } = query;
    const known = knownTransaction === undefined ? {} : { transaction: knownTransaction };
    if (evidence.kind === 'open' && evidence.failed === true)
      return { kind: 'uncertain', cause: 'the transaction failed in its block', failed: true, ...known };
    const left = ends - performance.now();
    if (left <= 0) return { kind: 'uncertain', cause, ...known };
    await delay(Math.min(pause, left));
  }
}
