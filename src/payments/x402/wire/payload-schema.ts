/** Reads a PaymentPayload of a buyer: the only parser of payment proofs, behind every channel. */

import { createHash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
import { eip155ChainId } from '../../pricing/networks.ts';
import { BAZAAR, isOfTool, TOOL_ECHO } from './bazaar.ts';
import type { EchoedRequirements, Eip3009Authorization, PaymentPayload, ResourceInfo } from './types.ts';

/** The extension that lets a buyer name its payment (contract 4.4). */
export const PAYMENT_IDENTIFIER = 'payment-identifier';
/** The extension that carries the buyer's secret (contract 4.5). */
export const BUYER_TOKEN = 'agent-commerce-buyer';
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const BYTES32 = /^0x[0-9a-fA-F]{64}$/;
/** Whole bytes, at least one. The header's size bounds the length. */
const BYTES = /^0x(?:[0-9a-fA-F]{2})+$/;
/** An integer without leading zeros; 78 digits hold 2^256 - 1. */
const INTEGER = /^(?:0|[1-9][0-9]{0,77})$/;
/** The same with leading zeros: amounts of an offer are compared as integers (contract 4.2). */
const AMOUNT = /^[0-9]{1,78}$/;
const IDENTIFIER = /^[A-Za-z0-9_-]{16,128}$/;
const UINT256_LIMIT = 1n << 256n;

/** Tokens of contract 1.3. */
type UnreadableReason = 'invalid_payload' | 'invalid_x402_version' | 'invalid_scheme';

/** A proof as the buyer sent it: well-formed, in canonical spelling, not yet verified. */
export type DecodedProof =
  | {
      readonly kind: 'decoded';
      readonly payload: PaymentPayload;
      /** `info.id` of the payment-identifier extension, when the buyer chose one. */
      readonly paymentIdentifier: string | undefined;
      /** The echoed token. Nothing else of a proof holds it, and only its digest is kept. */
      readonly buyerToken: string | undefined;
    }
  | {
      readonly kind: 'unreadable';
      readonly reason: UnreadableReason;
      /** The echoed token, where so much can be read. */
      readonly buyerToken?: string;
    };

/**
 * Reads a PaymentPayload for scheme `exact` with EIP-3009. It tolerates what the official schema
 * tolerates (@x402/core 2.27): `resource`, `accepted.extra` and `extensions` may be null, which is
 * the same as absent, and unknown members may occur everywhere. Those are dropped here, so nothing
 * behind this file can forward them. It also gives every value its canonical spelling (hex in lower
 * case, integers without leading zeros). Regular expressions run before any BigInt.
 */
export function readPaymentPayload(document: Json): DecodedProof {
  if (!isObject(document)) return { kind: 'unreadable', reason: 'invalid_payload' };
  const token = echoedToken(document['extensions']);
  const unreadable = (reason: UnreadableReason): DecodedProof => ({
    ...{ kind: 'unreadable', reason },
    ...(token === undefined ? {} : { buyerToken: token }),
  });
  if (document['x402Version'] !== 2) return unreadable('invalid_x402_version');
  const accepted = document['accepted'];
  if (!isObject(accepted) || typeof accepted['scheme'] !== 'string') return unreadable('invalid_payload');
  if (accepted['scheme'] !== 'exact') return unreadable('invalid_scheme');

  const requirements = readRequirements(accepted);
  const payload = readExactPayload(document['payload']);
  const resource = readResource(document['resource']);
  const identified = readExtensions(document['extensions']);
  if (!requirements || !payload || resource === 'illegible' || !identified) return unreadable('invalid_payload');
  const { id, asTool } = identified;
  const kept = {
    ...(id === undefined ? {} : { [PAYMENT_IDENTIFIER]: { info: { id } } }),
    ...(asTool ? { [BAZAAR]: TOOL_ECHO } : {}),
  };
  return {
    kind: 'decoded',
    payload: {
      x402Version: 2,
      ...(resource === undefined ? {} : { resource }),
      accepted: requirements,
      payload,
      ...(Object.keys(kept).length === 0 ? {} : { extensions: kept }),
    },
    paymentIdentifier: id,
    buyerToken: token,
  };
}

/** What identifies an authorization: the chain accepts each of these at most once. */
interface ReplaySubject {
  readonly chainId: number;
  readonly asset: string;
  readonly from: string;
  readonly nonce: string;
}

/**
 * The replay key (contract 4.3): SHA-256 hex over `x402|{chainId}|{asset}|{from}|{nonce}`, all
 * lower case. It depends on the authorization only, not on the spelling of a header or a signature.
 */
export function replayKey({ chainId, asset, from, nonce }: ReplaySubject): string {
  const subject = `x402|${chainId}|${asset.toLowerCase()}|${from.toLowerCase()}|${nonce.toLowerCase()}`;
  return createHash('sha256').update(subject).digest('hex');
}

/**
 * The replay key of a proof in the asset of this configuration and, where the proof names another
 * asset or network, the one that its payment has there.
 */
export function replayKeys(
  { accepted, payload: { authorization } }: PaymentPayload,
  own: Pick<ReplaySubject, 'chainId' | 'asset'>,
): readonly [payId: string] | readonly [payId: string, elsewhere: string] {
  const keyOf = ({ chainId, asset }: typeof own): string => replayKey({ ...authorization, chainId, asset });
  const chainId = eip155ChainId(accepted.network);
  const isOwn = chainId === own.chainId && accepted.asset === own.asset.toLowerCase();
  return isOwn || chainId === undefined ? [keyOf(own)] : [keyOf(own), keyOf({ chainId, asset: accepted.asset })];
}

function readRequirements(accepted: JsonObject): EchoedRequirements | undefined {
  const { network, amount, asset, payTo, maxTimeoutSeconds } = accepted;
  const extra = accepted['extra'] ?? undefined;
  if (typeof network !== 'string' || typeof maxTimeoutSeconds !== 'number') return undefined;
  if (!matches(amount, AMOUNT) || !matches(asset, ADDRESS) || !matches(payTo, ADDRESS)) return undefined;
  if (extra !== undefined && !isObject(extra)) return undefined;
  return {
    scheme: 'exact',
    network,
    amount: BigInt(amount).toString(),
    asset: asset.toLowerCase(),
    payTo: payTo.toLowerCase(),
    maxTimeoutSeconds,
    extra,
  };
}

function readExactPayload(
  value: Json | undefined,
): { readonly signature: string; readonly authorization: Eip3009Authorization } | undefined {
  if (!isObject(value)) return undefined;
  const { signature } = value;
  const authorization = readAuthorization(value['authorization']);
  if (!matches(signature, BYTES) || authorization === undefined) return undefined;
  return { signature: signature.toLowerCase(), authorization };
}

function readAuthorization(value: Json | undefined): Eip3009Authorization | undefined {
  if (!isObject(value)) return undefined;
  const { from, to, value: units, validAfter, validBefore, nonce } = value;
  if (!matches(from, ADDRESS) || !matches(to, ADDRESS) || !matches(nonce, BYTES32)) return undefined;
  if (!isUint256(units) || !isUint256(validAfter) || !isUint256(validBefore)) return undefined;
  return {
    from: from.toLowerCase(),
    to: to.toLowerCase(),
    value: units,
    validAfter,
    validBefore,
    nonce: nonce.toLowerCase(),
  };
}

/** Only `url` is kept: the rest of the echo repeats the offer. */
function readResource(value: Json | undefined): ResourceInfo | undefined | 'illegible' {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) return 'illegible';
  const { url } = value;
  return typeof url === 'string' ? { url } : 'illegible';
}

/** What is read of the echoed extensions. `asTool`: the offer described its resource as a tool. */
interface EchoedExtensions {
  readonly id: string | undefined;
  readonly asTool: boolean;
}

/**
 * Clients echo every extension of the offer, and may add their own. Only the payment identifier
 * must be well-formed, because a misspelled name must not become no name; undefined when it is not.
 */
function readExtensions(value: Json | undefined): EchoedExtensions | undefined {
  if (value === undefined || value === null) return { id: undefined, asTool: false };
  if (!isObject(value)) return undefined;
  const echoed = { id: undefined, asTool: isOfTool(value[BAZAAR]) };
  const identifier = value[PAYMENT_IDENTIFIER];
  if (identifier === undefined || identifier === null) return echoed;
  const info = isObject(identifier) ? identifier['info'] : undefined;
  if (!isObject(info)) return undefined;
  const { id } = info;
  if (id === undefined) return echoed;
  return matches(id, IDENTIFIER) ? { ...echoed, id } : undefined;
}

/** Anything but a text is no token and no error: a payment must not fail for it. */
function echoedToken(extensions: Json | undefined): string | undefined {
  const echoed = isObject(extensions) ? extensions[BUYER_TOKEN] : undefined;
  const info = isObject(echoed) ? echoed['info'] : undefined;
  const token = isObject(info) ? info['token'] : undefined;
  return typeof token === 'string' ? token : undefined;
}

function matches(value: Json | undefined, grammar: RegExp): value is string {
  return typeof value === 'string' && grammar.test(value);
}

function isUint256(value: Json | undefined): value is string {
  return matches(value, INTEGER) && BigInt(value) < UINT256_LIMIT;
}
