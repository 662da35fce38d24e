/** The ABI of an EIP-3009 token, and the calldata of its transfers with their marks. */

import { prepareEncodeFunctionData } from 'viem';
import {
  decodeFunctionData,
  encodeAbiParameters,
  encodeFunctionData,
  hexToBigInt,
  hexToNumber,
  parseAbi,
  parseAbiParameters,
  sliceHex,
} from 'viem/utils';
import type { Eip3009Authorization } from '../wire/types.ts';
import { lowerHex, WORD_BYTES, WORD_DIGITS } from './abi-words.ts';
import { callsIn } from './multicall.ts';

/** Transfers by payers that are accounts, and by payers that are contracts (FiatToken 2.2). */
const TRANSFERS = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);
// Prepared, because viem hashes a signature anew for every call.
const BY_ACCOUNT = prepareEncodeFunctionData({ abi: [TRANSFERS[0]] });
const BY_CONTRACT = prepareEncodeFunctionData({ abi: [TRANSFERS[1]] });

/** What the asset is asked, and what it logs. */
export const ASSET_ABI = parseAbi([
  // A number, because drafts of EIP-3009 tell used and cancelled apart: anything but 0 is spent.
  'function authorizationState(address authorizer, bytes32 nonce) view returns (uint256)',
  'function balanceOf(address account) view returns (uint256)',
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint256)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);

const PAYMENT_WORDS = parseAbiParameters('address, address, uint256');

/** The transfer call. The signature of an account must be canonical. */
export function transferCall(
  authorization: Eip3009Authorization,
  signature: string,
  signedBy: 'account' | 'contract',
): `0x${string}` {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const numbers = [BigInt(value), BigInt(validAfter), BigInt(validBefore)] as const;
  const members = [lowerHex(from), lowerHex(to), ...numbers, lowerHex(nonce)] as const;
  const bytes = lowerHex(signature);
  return signedBy === 'account'
    ? encodeFunctionData({ ...BY_ACCOUNT, args: [...members, ...vrs(bytes)] })
    : encodeFunctionData({ ...BY_CONTRACT, args: [...members, bytes] });
}

function vrs(signature: `0x${string}`): readonly [number, `0x${string}`, `0x${string}`] {
  const s = sliceHex(signature, WORD_BYTES, 2 * WORD_BYTES);
  return [hexToNumber(sliceHex(signature, 2 * WORD_BYTES)), sliceHex(signature, 0, WORD_BYTES), s];
}

/** The call with a mark behind its arguments, which the asset ignores: 32 bytes, hex without 0x. */
export function marked(call: string, mark: string | undefined): string {
  return mark === undefined ? call : `${call}${mark}`;
}

/**
 * The mark behind the transfer of an authorization, alone or in a batch; undefined for other
 * calldata or without one.
 */
export function markOf(
  calldata: string,
  { from, nonce }: Pick<Eip3009Authorization, 'from' | 'nonce'>,
): string | undefined {
  for (const call of callsIn(calldata)) {
    const transfer = transferIn(call);
    if (transfer === undefined || transfer.from !== lowerHex(from) || transfer.nonce !== lowerHex(nonce)) continue;
    const rest = call.startsWith(transfer.call) ? call.slice(transfer.call.length) : '';
    return rest.length === WORD_DIGITS ? rest : undefined;
  }
  return undefined;
}

/** The transfer that calldata begins with, in the spelling of `transferCall`. */
function transferIn(
  calldata: string,
): { readonly call: string; readonly from: string; readonly nonce: string } | undefined {
  try {
    const decoded = decodeFunctionData({ abi: TRANSFERS, data: lowerHex(calldata) });
    const [from, , , , , nonce] = decoded.args;
    return { call: encodeFunctionData({ abi: TRANSFERS, ...decoded }), from: lowerHex(from), nonce: lowerHex(nonce) };
  } catch {
    return undefined;
  }
}

/**
 * Until when the authorization of a payment is valid, Unix seconds, read from the calldata of its
 * transaction. Payer, payee, value, validAfter, validBefore and nonce lie there in a row, also
 * where a facilitator batches payments or calls through a contract of its own; undefined where they
 * do not.
 */
export function validBeforeIn(
  calldata: string,
  {
    from,
    payTo,
    units,
    nonce,
  }: { readonly from: string; readonly payTo: string; readonly units: bigint; readonly nonce: string },
): bigint | undefined {
  const head = encodeAbiParameters(PAYMENT_WORDS, [lowerHex(from), lowerHex(payTo), units]).slice(2);
  const last = lowerHex(nonce).slice(2);
  for (let at = calldata.indexOf(head); at !== -1; at = calldata.indexOf(head, at + 1)) {
    const validBefore = at + head.length + WORD_DIGITS;
    if (calldata.startsWith(last, validBefore + WORD_DIGITS))
      return hexToBigInt(`0x${calldata.slice(validBefore, validBefore + WORD_DIGITS)}`);
  }
  return undefined;
}
