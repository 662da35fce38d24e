/** Writes and reads the calldata of an EIP-3009 token: transfers, their marks, and questions. */

import type { Eip3009Authorization } from '../wire/types.ts';
import { bytesWords, hexWord, uintWord, WORD_BYTES, WORD_DIGITS } from './abi-words.ts';
import { ACCOUNT_SIGNATURE_BYTES } from './signature.ts';

/** Function selectors of an EIP-3009 token (FiatToken 2.2). */
export const SELECTORS = {
  /** `transferWithAuthorization(…, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)`. */
  transferByAccount: '0xe3ee160e',
  /**
   * `transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)`: payers that
   * are contracts
   */
  transferByContract: '0xcf092995',
  authorizationState: '0xe94a0102',
  balanceOf: '0x70a08231',
  name: '0x06fdde03',
  version: '0x54fd4d50',
  decimals: '0x313ce567',
  domainSeparator: '0x3644e515',
} as const;

/** Members of an authorization before the signature. */
const AUTHORIZATION_WORDS = 6;
/** Words of the call of a payer that is an account: six members, and v, r, s. */
const ACCOUNT_WORDS = AUTHORIZATION_WORDS + 3;
/** Where the signature of a contract begins, bytes: behind the members and this offset. */
const SIGNATURE_OFFSET = BigInt((AUTHORIZATION_WORDS + 1) * WORD_BYTES);
const SELECTOR_DIGITS = 10;

/** The transfer call. The signature of an account must be canonical. */
export function transferCall(
  authorization: Eip3009Authorization,
  signature: string,
  signedBy: 'account' | 'contract',
): string {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const numbers = [value, validAfter, validBefore].map((number) => uintWord(BigInt(number)));
  const members = [hexWord(from), hexWord(to), ...numbers, hexWord(nonce)].join('');
  return signedBy === 'account'
    ? `${SELECTORS.transferByAccount}${members}${splitSignature(signature)}`
    : `${SELECTORS.transferByContract}${members}${uintWord(SIGNATURE_OFFSET)}${bytesWords(signature)}`;
}

/** v, r and s, one word each. */
function splitSignature(signature: string): string {
  const digits = signature.slice(2);
  const vAt = 2 * (ACCOUNT_SIGNATURE_BYTES - 1);
  return `${digits.slice(vAt).padStart(WORD_DIGITS, '0')}${digits.slice(0, vAt)}`;
}

/** The call with a mark behind its arguments, which the asset ignores: 32 bytes, hex without 0x. */
export function marked(call: string, mark: string | undefined): string {
  return mark === undefined ? call : `${call}${mark}`;
}

/** The mark behind the arguments of a transfer; undefined for other calldata or without one. */
export function markOf(calldata: string): string | undefined {
  const end = endOfArguments(calldata);
  return end !== undefined && calldata.length === end + WORD_DIGITS ? calldata.slice(end) : undefined;
}

function endOfArguments(calldata: string): number | undefined {
  if (calldata.startsWith(SELECTORS.transferByAccount)) return SELECTOR_DIGITS + ACCOUNT_WORDS * WORD_DIGITS;
  if (!calldata.startsWith(SELECTORS.transferByContract)) return undefined;
  const lengthAt = SELECTOR_DIGITS + (AUTHORIZATION_WORDS + 1) * WORD_DIGITS;
  const bytes = Number.parseInt(calldata.slice(lengthAt, lengthAt + WORD_DIGITS), 16);
  return lengthAt + WORD_DIGITS + Math.ceil(bytes / WORD_BYTES) * WORD_DIGITS;
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
  const head = `${hexWord(from)}${hexWord(payTo)}${uintWord(units)}`;
  const last = hexWord(nonce);
  for (let at = calldata.indexOf(head); at !== -1; at = calldata.indexOf(head, at + 1)) {
    const validBefore = at + head.length + WORD_DIGITS;
    if (calldata.startsWith(last, validBefore + WORD_DIGITS))
      return BigInt(`0x${calldata.slice(validBefore, validBefore + WORD_DIGITS)}`);
  }
  return undefined;
}

/** `authorizationState(from, nonce)`: true when used, and when cancelled. */
export function authorizationStateCall(from: string, nonce: string): string {
  return `${SELECTORS.authorizationState}${hexWord(from)}${hexWord(nonce)}`;
}

/** `balanceOf(account)`, base units. */
export function balanceCall(account: string): string {
  return `${SELECTORS.balanceOf}${hexWord(account)}`;
}
