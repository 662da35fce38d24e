import { keccak256 } from '../../../crypto/keccak.ts';
import { bytesHex, hexWord, uintWord } from './abi-words.ts';

/** The EIP-712 domain of an EIP-3009 token: what a signature is good for. */
interface SigningDomain {
  /** Exactly as the contract has it: Base says `USD Coin`, Base Sepolia says `USDC`. */
  readonly name: string;
  readonly version: string;
  readonly chainId: number;
  /** The asset, 20 bytes as 0x-hex in any case. */
  readonly verifyingContract: string;
}

/** keccak256 of `EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)`. */
const DOMAIN_TYPE_HASH = '8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f';

/** EIP-712 domain separator, 32 bytes as 0x-hex; equal to what the token answers to `DOMAIN_SEPARATOR()`. */
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
