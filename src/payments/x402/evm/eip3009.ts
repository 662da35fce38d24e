/**
 * An EIP-3009 token: its ABI, the calldata of transfers with their marks, alone and in Multicall3,
 * and the EIP-712 digests that a payer signs.
 */

import { prepareEncodeFunctionData } from 'viem';
import {
  decodeFunctionData,
  decodeFunctionResult,
  encodeAbiParameters,
  encodeFunctionData,
  hexToBigInt,
  hexToNumber,
  parseAbi,
  parseAbiParameters,
  sliceHex,
  toFunctionSelector,
} from 'viem/utils';
import { keccak256 } from '../../../crypto/hash.ts';
import type { Eip3009Authorization } from '../wire/types.ts';

export const WORD_BYTES = 32;
/** Hex digits of a word. */
export const WORD_DIGITS = 2 * WORD_BYTES;

/**
 * 0x-hex that a parser has checked, as viem takes it: in lower case, because viem refuses an
 * address in mixed case that is no checksum.
 */
export function lowerHex(hex: string): `0x${string}` {
  return hex.toLowerCase() as `0x${string}`;
}

/** Bytes of a 0x-prefixed hex string that a parser has checked. */
export function hexBytes(hex: string): Uint8Array {
  return Buffer.from(hex.slice(2), 'hex');
}

/** 0x-prefixed lower-case hex of bytes. */
export function bytesHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
}

/** One word without prefix: a 0x-hex value (address, bytes32, quantity) padded on the left. */
export function hexWord(hex: string): string {
  return hex.slice(2).toLowerCase().padStart(WORD_DIGITS, '0');
}

/** One word without prefix: an unsigned integer below 2^256. */
function uintWord(value: bigint): string {
  return value.toString(16).padStart(WORD_DIGITS, '0');
}

/** Transfers by payers that are accounts, and by payers that are contracts (FiatToken 2.2). */
const TRANSFERS = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);
// Prepared, because viem else hashes the name and types of the function anew for every call.
const BY_ACCOUNT = prepareEncodeFunctionData({ abi: [TRANSFERS[0]] });
const BY_CONTRACT = prepareEncodeFunctionData({ abi: [TRANSFERS[1]] });

/** The views that the gateway calls on the asset, and the events that the asset logs. */
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

/** Appends a mark (32 bytes, hex without 0x) to a call; the asset ignores it. */
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
 * The `validBefore` of a payment, Unix seconds, read from the calldata of its transaction. Payer,
 * payee, value, validAfter, validBefore and nonce lie there in a row, also where a facilitator
 * batches payments or calls through a contract of its own; undefined where they do not.
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

/** The address of Multicall3 on every chain that has it. */
export const MULTICALL3 = '0xca11bde05977b3631167028862be2a173976ca11';

const ABI = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] results)',
]);
const AGGREGATE = prepareEncodeFunctionData({ abi: ABI, functionName: 'aggregate3' });
const SELECTOR = toFunctionSelector(ABI[0]);

/** Calls of one contract in this order. One that fails undoes itself and no other. */
export function aggregateCall(target: string, calls: readonly string[]): `0x${string}` {
  const address = lowerHex(target);
  const list = calls.map((call) => ({ target: address, allowFailure: true, callData: lowerHex(call) }));
  return encodeFunctionData({ ...AGGREGATE, args: [list] });
}

/** The success of each call, in order. @throws when `returned` holds no results */
export function succeeded(returned: string): readonly boolean[] {
  const results = decodeFunctionResult({ abi: ABI, functionName: 'aggregate3', data: lowerHex(returned) });
  return results.map(({ success }) => success);
}

/** The calls in calldata: those that are batched, or the calldata itself. */
export function callsIn(calldata: string): readonly string[] {
  if (!calldata.startsWith(SELECTOR)) return [calldata];
  try {
    const { args } = decodeFunctionData({ abi: ABI, data: lowerHex(calldata) });
    return args[0].map(({ callData }) => callData);
  } catch {
    return [];
  }
}

/**
 * keccak256 of `EIP712Domain(string name,string version,uint256 chainId,address
 * verifyingContract)`.
 */
const DOMAIN_TYPE_HASH = '8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f';

/**
 * keccak256 of `TransferWithAuthorization(address from,address to,uint256 value,uint256
 * validAfter,uint256 validBefore,bytes32 nonce)`.
 */
const TRANSFER_TYPE_HASH = '0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267';
/** Type hash and six members, one word each. */
const STRUCT_BYTES = 7 * WORD_BYTES;
/** `0x1901`, the domain separator, the hash of the struct. */
const ENVELOPE_BYTES = 2 + 2 * WORD_BYTES;

/** The EIP-712 domain of an EIP-3009 token: where a signature is valid. */
interface SigningDomain {
  /** Exactly as in the contract: `USD Coin` on Base, `USDC` on Base Sepolia. */
  readonly name: string;
  readonly version: string;
  readonly chainId: number;
  /** The asset, 20 bytes as 0x-hex in any case. */
  readonly verifyingContract: string;
}

/** EIP-712 domain separator, 32 bytes as 0x-hex; equal to the token's `DOMAIN_SEPARATOR()`. */
export function domainSeparator({ name, version, chainId, verifyingContract }: SigningDomain): string {
  const words = [
    DOMAIN_TYPE_HASH,
    textHash(name),
    textHash(version),
    uintWord(BigInt(chainId)),
    hexWord(verifyingContract),
  ];
  return bytesHex(keccak256(Buffer.from(words.join(''), 'hex')));
}

function textHash(text: string): string {
  return Buffer.from(keccak256(Buffer.from(text, 'utf8'))).toString('hex');
}

/** The 32 bytes a payer signs for an authorization (EIP-712). */
type AuthorizationDigest = (authorization: Eip3009Authorization) => Uint8Array;

/**
 * Digests for one signing domain by plain concatenation: every member is one word, so a generic
 * encoder would only cost time. The two buffers are reused, which is safe because the function is
 * synchronous. The authorization must have passed the parser of proofs.
 */
export function authorizationDigest(separator: string): AuthorizationDigest {
  const struct = Buffer.alloc(STRUCT_BYTES);
  const envelope = Buffer.alloc(ENVELOPE_BYTES);
  struct.set(hexBytes(TRANSFER_TYPE_HASH), 0);
  envelope.writeUInt16BE(0x1901, 0);
  envelope.set(hexBytes(separator), 2);
  return function digest({ from, to, value, validAfter, validBefore, nonce }) {
    writeWord(struct, 1, from.slice(2));
    writeWord(struct, 2, to.slice(2));
    writeWord(struct, 3, BigInt(value).toString(16));
    writeWord(struct, 4, BigInt(validAfter).toString(16));
    writeWord(struct, 5, BigInt(validBefore).toString(16));
    writeWord(struct, 6, nonce.slice(2));
    envelope.set(keccak256(struct), 2 + WORD_BYTES);
    return keccak256(envelope);
  };
}

function writeWord(buffer: Buffer, index: number, digits: string): void {
  buffer.write(digits.padStart(WORD_DIGITS, '0'), index * WORD_BYTES, 'hex');
}
