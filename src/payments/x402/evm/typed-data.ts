/** The EIP-712 digests that a payer signs: domain of the asset and transfer authorization. */

import { keccak256 } from '../../../crypto/keccak.ts';
import type { Eip3009Authorization } from '../wire/types.ts';
import { bytesHex, hexBytes, hexWord, uintWord, WORD_BYTES, WORD_DIGITS } from './calldata.ts';

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
 * synchronous. The authorization must have passed the codec.
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
