import type { Eip3009Authorization } from '../wire/types.ts';
import { hexWord, uintWord, WORD_BYTES } from './abi-words.ts';
import { ACCOUNT_SIGNATURE_BYTES } from './signature.ts';

/** Function selectors of an EIP-3009 token (FiatToken 2.2). */
export const SELECTORS = {
  /**
   * `transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)`
   */
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

/** Members of an authorization in front of the signature. */
const AUTHORIZATION_WORDS = 6;

/** The call that moves the money. The signature of an account must be in its canonical spelling. */
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
    : `${SELECTORS.transferByContract}${members}${bytesArgument(signature)}`;
}

/**
 * Until when the authorization of a payment is valid, Unix seconds, as the calldata of its
 * transaction spells it: payer, payee, value, validAfter, validBefore and nonce stand there one
 * after another, also where a settlement lane calls the token for many payments or through a
 * contract of its own. Undefined where they do not.
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
  const [word, last] = [2 * WORD_BYTES, hexWord(nonce)];
  for (let at = calldata.indexOf(head); at !== -1; at = calldata.indexOf(head, at + 1)) {
    const members = at + head.length;
    if (calldata.startsWith(last, members + 2 * word))
      return BigInt(`0x${calldata.slice(members + word, members + 2 * word)}`);
  }
  return undefined;
}

/** Words of the call of a payer that is an account: six members, and v, r, s. */
const ACCOUNT_WORDS = AUTHORIZATION_WORDS + 3;
const SELECTOR_DIGITS = 10;

/**
 * The call with a mark behind its arguments, which the asset does not look at. `mark`: 32 bytes,
 * hex without 0x.
 */
export function marked(call: string, mark: string | undefined): string {
  return mark === undefined ? call : `${call}${mark}`;
}

/**
 * The mark behind the arguments of a transfer; undefined for calldata that is none, or has none.
 */
export function markOf(calldata: string): string | undefined {
  const word = 2 * WORD_BYTES;
  const end = endOfArguments(calldata, word);
  return end !== undefined && calldata.length === end + word ? calldata.slice(end) : undefined;
}

function endOfArguments(calldata: string, word: number): number | undefined {
  if (calldata.startsWith(SELECTORS.transferByAccount)) return SELECTOR_DIGITS + ACCOUNT_WORDS * word;
  if (!calldata.startsWith(SELECTORS.transferByContract)) return undefined;
  const lengthAt = SELECTOR_DIGITS + (AUTHORIZATION_WORDS + 1) * word;
  const bytes = Number.parseInt(calldata.slice(lengthAt, lengthAt + word), 16);
  return lengthAt + word + Math.ceil(bytes / WORD_BYTES) * word;
}

/** v, r and s, one word each. */
function splitSignature(signature: string): string {
  const digits = signature.slice(2);
  const vAt = 2 * (ACCOUNT_SIGNATURE_BYTES - 1);
  return `${digits.slice(vAt).padStart(2 * WORD_BYTES, '0')}${digits.slice(0, vAt)}`;
}

/** The last argument, of type bytes: offset, length, content padded to whole words. */
function bytesArgument(signature: string): string {
  const digits = signature.slice(2);
  const padded = digits.padEnd(Math.ceil(digits.length / (2 * WORD_BYTES)) * 2 * WORD_BYTES, '0');
  return `${uintWord(BigInt((AUTHORIZATION_WORDS + 1) * WORD_BYTES))}${uintWord(BigInt(digits.length / 2))}${padded}`;
}

/**
 * `authorizationState(from, nonce)`: true when used or cancelled, which cannot be told apart here.
 */
export function authorizationStateCall(from: string, nonce: string): string {
  return `${SELECTORS.authorizationState}${hexWord(from)}${hexWord(nonce)}`;
}

/** `balanceOf(account)`, base units. */
export function balanceCall(account: string): string {
  return `${SELECTORS.balanceOf}${hexWord(account)}`;
}
