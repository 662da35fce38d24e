/** Asks wallets that are contracts whether they signed (ERC-1271, ERC-6492), by simulated calls. */

import { type Client, erc6492SignatureValidatorAbi, erc6492SignatureValidatorByteCode, type Hex } from 'viem';
import { getCode } from 'viem/actions';
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
import type { WalletSignatures } from '../wire/types.ts';
import { clientOver, type Rpc, RpcRefusal } from './node.ts';

const WALLET_ABI = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)']);
/** The answer of a wallet that signed (ERC-1271): assets compare the whole word. */
const SIGNED = padHex('0x1626ba7e', { dir: 'right' });
/** The answer of the validator of ERC-6492 for a good signature. */
const VALID = '0x01';
/** Gas of a question: passkeys verified in bytecode need the most, about 0.4 million. */
const ASK_GAS = 1_000_000n;
/** Gas of a question that deploys the wallet first. */
const DEPLOY_AND_ASK_GAS = 5_000_000n;
const NOT_SIGNED = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature' } as const;
const NOT_DEPLOYED = { kind: 'refused', reason: 'eip6492_factory_not_allowed' } as const;

/**
 * @param deploysWallets Whether the rail deploys a wallet before it pays (ERC-6492). Our own
 * relayer does not: it would call a contract of the payer's choice (x402 3.2).
 */
export function createWalletSignatures(rpc: Pick<Rpc, 'call'>, deploysWallets: boolean): WalletSignatures {
  const client = clientOver(rpc.call);
  return {
    async check(payer, hash, signed) {
      const [wallet, digest, signature] = [lowerHex(payer), lowerHex(hash), lowerHex(signed)];
      const wrapped = isErc6492Signature(signature);
      // A deployed wallet does not need the wrapper, and the asset does not know wrappers.
      const inner = wrapped ? innerSignature(signature) : signature;
      // An account without code answers with nothing.
      if (inner !== undefined && (await isSigned(client, wallet, digest, inner)))
        return { kind: 'signed', signature: inner };
      if (!wrapped || (await getCode(client, { address: wallet })) !== undefined) return NOT_SIGNED;
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

/** The signature in a wrapper (ERC-6492); undefined for other bytes, garbage or an empty one. */
export function innerSignature(wrapped: `0x${string}`): `0x${string}` | undefined {
  try {
    if (!isErc6492Signature(wrapped)) return undefined;
    const { signature } = parseErc6492Signature(wrapped);
    return signature === '0x' ? undefined : signature;
  } catch {
    return undefined;
  }
}
