/** Asks wallets that are contracts whether they signed (ERC-1271, ERC-6492), by simulated calls. */

import { type Client, erc6492SignatureValidatorAbi, erc6492SignatureValidatorByteCode, type Hex } from 'viem';
import {
  encodeDeployData,
  encodeFunctionData,
  isErc6492Signature,
  numberToHex,
  padHex,
  parseAbi,
  parseErc6492Signature,
} from 'viem/utils';
import { lowerHex } from '../evm/eip3009.ts';
import { clientOver } from './client.ts';
import { type Rpc, RpcRefusal } from './rpc.ts';

const WALLET_ABI = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)']);
/** What a wallet that signed returns (ERC-1271): assets compare the whole word. */
const SIGNED = padHex('0x1626ba7e', { dir: 'right' });
/** What the validator of ERC-6492 returns for a good signature. */
const VALID = '0x01';
/** Gas of a question: passkeys verified in bytecode need the most, about 0.4 million. */
const ASK_GAS = 1_000_000n;
/** The same when the wallet is deployed first. */
const DEPLOY_AND_ASK_GAS = 5_000_000n;
const NOT_SIGNED = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature' } as const;
const NOT_DEPLOYED = { kind: 'refused', reason: 'eip6492_factory_not_allowed' } as const;
/** How long an account is known to be a contract, milliseconds (contract 4.2). */
export const CODE_TTL_MS = 600_000;

/**
 * How long it is known to be none: its first payment may deploy it, and a second follow at once.
 */
export const NO_CODE_TTL_MS = 5_000;
/** Most remembered accounts; the oldest answer goes first. */
const CODE_CACHE_ENTRIES = 10_000;
/** Most concurrent lookups: forged proofs with invented payers must not use up the RPC. */
export const CODE_LOOKUPS = 16;

type WalletRefusal = 'invalid_exact_evm_payload_signature' | 'eip6492_factory_not_allowed';

export type WalletVerdict =
  /** `signature`: as the asset takes it. */
  | { readonly kind: 'signed'; readonly signature: string }
  | { readonly kind: 'refused'; readonly reason: WalletRefusal };

/** Asks a contract whether it signed, by simulation: nothing is sent or changed. */
export interface WalletSignatures {
  /** All 0x-hex. @throws when the node does not answer */
  check(wallet: string, digest: string, signature: string): Promise<WalletVerdict>;
}

interface WalletSignatureDeps {
  readonly rpc: Pick<Rpc, 'call'>;
  /** Whether an account is a contract; rejects when the chain does not answer. */
  readonly hasCode: (address: string) => Promise<boolean>;
  /**
   * Whether the rail deploys a wallet before it pays (ERC-6492). Our own relayer does not: it would
   * call a contract of the payer's choice (x402 3.2).
   */
  readonly deploysWallets: boolean;
}

export function createWalletSignatures({ rpc, hasCode, deploysWallets }: WalletSignatureDeps): WalletSignatures {
  const client = clientOver(rpc.call);
  return {
    async check(payer, hash, signed) {
      const [wallet, digest, signature] = [lowerHex(payer), lowerHex(hash), lowerHex(signed)];
      const wrapped = isErc6492Signature(signature);
      if (await hasCode(payer)) {
        // A deployed wallet does not need its wrapper, and the asset does not know it.
        const inner = wrapped ? innerSignature(signature) : signature;
        if (inner === undefined || !(await isSigned(client, wallet, digest, inner))) return NOT_SIGNED;
        return { kind: 'signed', signature: inner };
      }
      if (!wrapped) return NOT_SIGNED;
      if (!deploysWallets) return NOT_DEPLOYED;
      return (await wouldBeSigned(client, wallet, digest, signature)) ? { kind: 'signed', signature } : NOT_SIGNED;
    },
  };
}

async function isSigned(client: Client, wallet: Hex, digest: Hex, signature: Hex): Promise<boolean> {
  const data = encodeFunctionData({ abi: WALLET_ABI, functionName: 'isValidSignature', args: [digest, signature] });
  return (await simulated(client, { to: wallet, data }, ASK_GAS)) === SIGNED;
}

/**
 * The validator that ERC-6492 publishes, run as a call without an address: it deploys the wallet as
 * its wrapper states, and asks it about the signature.
 */
async function wouldBeSigned(client: Client, wallet: Hex, digest: Hex, wrapped: Hex): Promise<boolean> {
  const data = encodeDeployData({
    abi: erc6492SignatureValidatorAbi,
    bytecode: erc6492SignatureValidatorByteCode,
    args: [wallet, digest, wrapped],
  });
  return (await simulated(client, { data }, DEPLOY_AND_ASK_GAS)) === VALID;
}

/** Undefined: the call reverted. */
async function simulated(
  client: Client,
  call: { readonly to?: Hex; readonly data: Hex },
  gas: bigint,
): Promise<string | undefined> {
  try {
    return await client.request({ method: 'eth_call', params: [{ ...call, gas: numberToHex(gas) }, 'latest'] });
  } catch (error) {
    if (error instanceof RpcRefusal && error.reverted) return undefined;
    throw error;
  }
}

/** Undefined for what is no wrapper (ERC-6492), for one of garbage, or around nothing. */
export function innerSignature(wrapped: `0x${string}`): `0x${string}` | undefined {
  try {
    if (!isErc6492Signature(wrapped)) return undefined;
    const { signature } = parseErc6492Signature(wrapped);
    return signature === '0x' ? undefined : signature;
  } catch {
    return undefined;
  }
}

type HasCode = (address: string) => Promise<boolean>;

/**
 * `lookup` with a memory and a bound, one call per account at a time. Rejects when the chain fails
 * or the bound is reached.
 */
export function rememberCode(lookup: HasCode, now: () => number = Date.now): HasCode {
  const known = new Map<string, { readonly hasCode: boolean; readonly until: number }>();
  const asking = new Map<string, Promise<boolean>>();
  const remember = (address: string, hasCode: boolean): void => {
    const oldest = known.size >= CODE_CACHE_ENTRIES ? known.keys().next().value : undefined;
    if (oldest !== undefined) known.delete(oldest);
    known.set(address, { hasCode, until: now() + (hasCode ? CODE_TTL_MS : NO_CODE_TTL_MS) });
  };
  const ask = async (address: string): Promise<boolean> => {
    try {
      const hasCode = await lookup(address);
      remember(address, hasCode);
      return hasCode;
    } finally {
      asking.delete(address);
    }
  };
  return async function hasCode(address) {
    const cached = known.get(address);
    if (cached !== undefined && now() < cached.until) return cached.hasCode;
    const running = asking.get(address);
    if (running !== undefined) return running;
    if (asking.size >= CODE_LOOKUPS) throw new Error('too many questions about payers at a time');
    known.delete(address);
    const question = ask(address);
    asking.set(address, question);
    return question;
  };
}
