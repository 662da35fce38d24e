/** Signs transactions of EIP-1559: their RLP, the digest that is signed, and the hash. */

import { keccak256 } from '../../../crypto/keccak.ts';
import { bytesHex, hexBytes, WORD_BYTES } from './calldata.ts';
import type { SigningKey } from './signing-key.ts';

/** The envelope's type (EIP-2718). */
const TYPE = Uint8Array.of(2);
/** Strings and lists up to this length have it in their first byte. */
const SHORT = 55;
const STRING = 0x80;
const LIST = 0xc0;
const NO_BYTES = new Uint8Array();
/** No coin is moved and no storage is announced. */
const NOTHING = rlpString(NO_BYTES);
const NO_LIST = rlpList([]);

/** The most that one unit of gas may cost, wei. */
export interface Fees {
  /** Of it, at most this for the block producer. */
  readonly maxPriorityFeePerGas: bigint;
  readonly maxFeePerGas: bigint;
}

/** A call from an account, before it is signed. */
interface UnsignedTransaction extends Fees {
  readonly chainId: number;
  /** The account's transactions before it. */
  readonly number: number;
  /** 0x-hex. */
  readonly to: string;
  /** 0x-hex. */
  readonly data: string;
  /** Gas limit. */
  readonly gas: bigint;
}

/** The signed bytes and their hash, known before anything is sent. */
export function signTransaction(
  transaction: UnsignedTransaction,
  key: SigningKey,
): { readonly raw: string; readonly hash: string } {
  const { chainId, number, maxPriorityFeePerGas, maxFeePerGas, gas, to, data } = transaction;
  const numbers = [BigInt(chainId), BigInt(number), maxPriorityFeePerGas, maxFeePerGas, gas].map(rlpNumber);
  const members = [...numbers, rlpString(hexBytes(to)), NOTHING, rlpString(hexBytes(data)), NO_LIST];
  const { compact, recoveryId } = key.sign(keccak256(Buffer.concat([TYPE, rlpList(members)])));
  const [r, s] = [compact.subarray(0, WORD_BYTES), compact.subarray(WORD_BYTES)];
  const signature = [rlpNumber(BigInt(recoveryId)), rlpString(withoutZeros(r)), rlpString(withoutZeros(s))];
  const signed = Buffer.concat([TYPE, rlpList([...members, ...signature])]);
  return { raw: bytesHex(signed), hash: bytesHex(keccak256(signed)) };
}

/** Without leading zeros; zero is the empty string. */
function rlpNumber(value: bigint): Uint8Array {
  const digits = value === 0n ? '' : value.toString(16);
  return rlpString(Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex'));
}

function withoutZeros(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0);
  return first === -1 ? NO_BYTES : bytes.subarray(first);
}

function rlpString(bytes: Uint8Array): Uint8Array {
  const [only] = bytes;
  return bytes.length === 1 && only !== undefined && only < STRING
    ? bytes
    : Buffer.concat([rlpHead(bytes.length, STRING), bytes]);
}

function rlpList(items: readonly Uint8Array[]): Uint8Array {
  const length = items.reduce((sum, item) => sum + item.length, 0);
  return Buffer.concat([rlpHead(length, LIST), ...items]);
}

function rlpHead(length: number, kind: number): Uint8Array {
  if (length <= SHORT) return Uint8Array.of(kind + length);
  const digits = length.toString(16);
  const size = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
  return Buffer.concat([Uint8Array.of(kind + SHORT + size.length), size]);
}
