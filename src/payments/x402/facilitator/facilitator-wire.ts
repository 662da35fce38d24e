import { isObject } from '../../../json/object.ts';
import type { Json } from '../../../json/types.ts';
import { isTransactionHash } from '../chain/chain-answers.ts';
import { PAYMENT_IDENTIFIER } from '../wire/payload-schema.ts';
import type { Proof } from '../wire/rail.ts';
import { inwardReason } from '../wire/reasons.ts';
import type { PaymentRequirements } from '../wire/types.ts';

/**
 * The facilitator API (specs/x402-specification-v2.md, section 7). A body with a boolean `isValid` or `success` is a verdict,
 * whatever the status; anything else is none.
 */

export type VerifyAnswer =
  | { readonly kind: 'valid' }
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'none'; readonly cause: string };

/**
 * `claimed`: the facilitator says it settled. A `transaction` is well-formed and of our network. `unsent`: there was no connection, so
 * the request certainly did not reach it.
 */
export type SettleAnswer =
  | { readonly kind: 'claimed'; readonly transaction: string }
  | {
      readonly kind: 'denied';
      readonly reason: string;
      readonly transaction: string | undefined;
      /** Whether a hash was given, well-formed or not. */
      readonly namedTransaction: boolean;
    }
  | { readonly kind: 'none'; readonly cause: string; readonly transaction?: string; readonly unsent?: boolean };

/**
 * What `/verify` and `/settle` are sent. Both copies of the requirement are ours, and of what the buyer echoed only the URL (equal
 * to ours) and the extension that we declared go along: the facilitator acts on our word, not on the buyer's.
 */
export function facilitatorRequest({ payload }: Proof, offer: PaymentRequirements): object {
  const { resource, extensions } = payload;
  const identifier = extensions?.[PAYMENT_IDENTIFIER];
  return {
    x402Version: 2,
    paymentPayload: {
      x402Version: 2,
      ...(resource === undefined ? {} : { resource: { url: resource.url } }),
      accepted: offer,
      payload: payload.payload,
      ...(identifier === undefined ? {} : { extensions: { [PAYMENT_IDENTIFIER]: identifier } }),
    },
    paymentRequirements: offer,
  };
}

export function readVerifyAnswer(status: number, json: Json | undefined, payer: string): VerifyAnswer {
  if (isOutage(status) || !isObject(json) || typeof json['isValid'] !== 'boolean') return noVerdict(status);
  if (!json['isValid']) return { kind: 'invalid', reason: inwardReason(json['invalidReason']) };
  return samePayer(json['payer'], payer)
    ? { kind: 'valid' }
    : { kind: 'none', cause: 'the verdict names another payer' };
}

export function readSettleAnswer(
  status: number,
  json: Json | undefined,
  expected: { readonly payer: string; readonly network: string },
): SettleAnswer {
  if (!isObject(json) || typeof json['success'] !== 'boolean') return noVerdict(status);
  const { transaction, network, payer } = json;
  const named = transaction !== undefined && transaction !== null && transaction !== '';
  // A hash of another network would be looked for in the wrong place; a refusal may leave the network out.
  const ours = network === expected.network || (network === undefined && !json['success']);
  const hash = ours && isTransactionHash(transaction) ? transaction.toLowerCase() : undefined;
  if (!json['success'] && isOutage(status))
    return hash === undefined ? noVerdict(status) : { ...noVerdict(status), transaction: hash };
  if (!json['success'])
    return { kind: 'denied', reason: inwardReason(json['errorReason']), transaction: hash, namedTransaction: named };
  if (!ours) return { kind: 'none', cause: 'the settlement names another network' };
  if (hash === undefined) return { kind: 'none', cause: 'the settlement names no transaction' };
  if (!samePayer(payer, expected.payer))
    return { kind: 'none', cause: 'the settlement names another payer', transaction: hash };
  return { kind: 'claimed', transaction: hash };
}

/** Undefined when the facilitator serves `exact` on this network, or does not say what it serves; else the cause. */
export function readSupported(status: number, json: Json | undefined, network: string): string | undefined {
  if (isOutage(status)) return `the facilitator answered ${status}`;
  const kinds = isObject(json) ? json['kinds'] : undefined;
  if (!Array.isArray(kinds)) return status === 200 ? 'the facilitator does not say what it supports' : undefined;
  const served = kinds.some(
    (kind: Json) =>
      isObject(kind) && kind['x402Version'] === 2 && kind['scheme'] === 'exact' && covers(kind['network'], network),
  );
  return served ? undefined : `the facilitator does not serve exact on ${network}`;
}

/** Statuses that speak of the facilitator and not of the payment, whatever the body says (CONTRACT 1.2). */
function isOutage(status: number): boolean {
  return status >= 500 || status === 401 || status === 403 || status === 429;
}

/** Networks may be given as a family, `eip155:*`. */
function covers(offered: Json | undefined, network: string): boolean {
  return offered === network || offered === `${network.slice(0, network.indexOf(':'))}:*`;
}

function samePayer(payer: Json | undefined, expected: string): boolean {
  if (payer === undefined || payer === null || payer === '') return true;
  return typeof payer === 'string' && payer.toLowerCase() === expected.toLowerCase();
}

function noVerdict(status: number): { readonly kind: 'none'; readonly cause: string } {
  return { kind: 'none', cause: `the facilitator answered ${status} without a verdict` };
}
