import { hexWord, uintWord, WORD_BYTES } from '../evm/abi-words.ts';
import { readHex } from './chain-answers.ts';
import { type Rpc, RpcRefusal } from './rpc.ts';
import { WALLET_VALIDATOR } from './wallet-validator.ts';

/** Why a signature that is no account's is not taken. */
type WalletRefusal = 'invalid_exact_evm_payload_signature' | 'eip6492_factory_not_allowed';

/** What a wallet says of a signature. */
export type WalletVerdict =
  /** `signature`: as the asset takes it. */
  | { readonly kind: 'signed'; readonly signature: string }
  | { readonly kind: 'refused'; readonly reason: WalletRefusal };

/** Asks wallets that are contracts whether they signed, by simulation: nothing is sent, nothing is changed. */
export interface WalletSignatures {
  /** All 0x-hex. @throws when the node does not answer */
  check(wallet: string, digest: string, signature: string): Promise<WalletVerdict>;
}

interface WalletSignatureDeps {
  readonly rpc: Pick<Rpc, 'call'>;
  /** Whether an account is a contract; rejects when the chain does not answer. */
  readonly hasCode: (address: string) => Promise<boolean>;
  /**
   * Whether the rail deploys a wallet before it pays (ERC-6492). Our own relayer does not: it would call a contract of the payer's choice
   * (security X8).
   */
  readonly deploysWallets: boolean;
}

/** `isValidSignature(bytes32,bytes)`, and what a wallet that signed returns (ERC-1271). */
const IS_VALID_SIGNATURE = '0x1626ba7e';
/** Behind a signature of a wallet that need not be deployed (ERC-6492). */
const WRAPPED = '6492'.repeat(WORD_BYTES / 2);
/** What the validator of ERC-6492 returns for a good signature. */
const VALID = '0x01';
/** Gas of a question: passkeys verified in bytecode need the most, about 0.4 million. */
const ASK_GAS = 1_000_000n;
/** The same when the wallet is deployed first. */
const DEPLOY_AND_ASK_GAS = 5_000_000n;

const NOT_SIGNED = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature' } as const;
const NOT_DEPLOYED = { kind: 'refused', reason: 'eip6492_factory_not_allowed' } as const;

export function createWalletSignatures({ rpc, hasCode, deploysWallets }: WalletSignatureDeps): WalletSignatures {
  /** Undefined: the call reverted. */
  const simulated = async (call: { readonly to?: string; readonly data: string }, gas: bigint) => {
    try {
      const answer = await rpc.call('eth_call', [{ ...call, gas: `0x${gas.toString(16)}` }, 'latest']);
      return readHex(answer, 'call result');
    } catch (error) {
      if (error instanceof RpcRefusal && error.reverted) return undefined;
      throw error;
    }
  };
  const saysSigned = async (wallet: string, digest: string, signature: string): Promise<boolean> => {
    const data = `${IS_VALID_SIGNATURE}${hexWord(digest)}${uintWord(64n)}${bytesOf(signature)}`;
    const answer = await simulated({ to: wallet, data }, ASK_GAS);
    return answer === `${IS_VALID_SIGNATURE}${'0'.repeat(56)}`;
  };
  const wouldSaySigned = async (wallet: string, digest: string, wrapped: string): Promise<boolean> => {
    const members = `${hexWord(wallet)}${hexWord(digest)}${uintWord(96n)}${bytesOf(wrapped)}`;
    return (await simulated({ data: `${WALLET_VALIDATOR}${members}` }, DEPLOY_AND_ASK_GAS)) === VALID;
  };

  return {
    async check(wallet, digest, signature) {
      const wrapped = signature.endsWith(WRAPPED);
      if (await hasCode(wallet)) {
        // A wallet that was deployed since has no use for its wrapper, and the asset does not know it.
        const inner = wrapped ? innerSignature(signature) : signature;
        if (inner === undefined || !(await saysSigned(wallet, digest, inner))) return NOT_SIGNED;
        return { kind: 'signed', signature: inner };
      }
      if (!wrapped) return NOT_SIGNED;
      if (!deploysWallets) return NOT_DEPLOYED;
      return (await wouldSaySigned(wallet, digest, signature)) ? { kind: 'signed', signature } : NOT_SIGNED;
    },
  };
}

/** The last argument of a call, of type bytes: length and content padded to whole words. */
function bytesOf(hex: string): string {
  const digits = hex.slice(2);
  const words = Math.ceil(digits.length / (2 * WORD_BYTES));
  return `${uintWord(BigInt(digits.length / 2))}${digits.padEnd(words * 2 * WORD_BYTES, '0')}`;
}

/** The third member of `abi.encode(address factory, bytes call, bytes signature)` in a wrapper; undefined when there is none. */
function innerSignature(wrapped: string): string | undefined {
  const digits = wrapped.slice(2, -WRAPPED.length);
  const offset = numberAt(digits, 2 * WORD_BYTES);
  const length = offset === undefined ? undefined : numberAt(digits, offset);
  if (offset === undefined || length === undefined || length === 0) return undefined;
  const start = 2 * (offset + WORD_BYTES);
  const inner = digits.slice(start, start + 2 * length);
  return inner.length === 2 * length ? `0x${inner}` : undefined;
}

/** The number in the word at an offset of bytes; undefined for one that cannot be an offset or a length here. */
function numberAt(digits: string, offset: number): number | undefined {
  const word = digits.slice(2 * offset, 2 * (offset + WORD_BYTES));
  if (word.length !== 2 * WORD_BYTES) return undefined;
  const number = BigInt(`0x${word}`);
  return number <= BigInt(digits.length) ? Number(number) : undefined;
}
