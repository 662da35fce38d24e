/** Compares the configured asset with the chain, before anything is sold or written for it. */

import type { Client } from 'viem';
import { getChainId, getCode } from 'viem/actions';
import { lowerHex } from '../evm/eip3009.ts';
import type { X402Config } from '../wire/settings.ts';
import { askAsset, clientOver, createRpc, inOrder, type Rpc, RpcRefusal, UndecodableAnswer } from './node.ts';

type AssetTerms = Pick<
  X402Config,
  'chainId' | 'asset' | 'assetName' | 'assetVersion' | 'assetDecimals' | 'domainSeparator'
>;

/** A setting of the asset that the chain contradicts. */
interface AssetDifference {
  readonly field: 'network' | 'asset' | 'assetName' | 'assetVersion' | 'assetDecimals' | 'domainSeparator';
  readonly expected: string;
  /** Undefined when the asset does not answer this call. */
  readonly found: string | undefined;
}

/** The chain contradicts the configured asset: payments would fail, or prices would be wrong. */
export class AssetMismatch extends Error {
  readonly differences: readonly AssetDifference[];

  constructor(differences: readonly AssetDifference[]) {
    const lines = differences.map(
      ({ field, expected, found }) => `${field} is ${found ?? 'not there'}, not ${expected}`,
    );
    super(`payments.x402 does not match the chain: ${lines.join('; ')}`);
    this.name = 'AssetMismatch';
    this.differences = differences;
  }
}

/** @throws AssetMismatch, or another error when the node does not answer */
export async function requireAsset(rpc: Rpc, terms: AssetTerms): Promise<void> {
  const differences = await checkAsset(rpc, terms);
  if (differences.length > 0) throw new AssetMismatch(differences);
}

/**
 * Empty when configuration and chain agree. A wrong EIP-712 name would make every payment fail
 * silently, wrong decimals every price wrong. A name or version that the asset does not tell (some
 * have no `version()`) is judged by the domain separator.
 * @throws when the node does not answer
 */
export async function checkAsset(rpc: Rpc, terms: AssetTerms): Promise<readonly AssetDifference[]> {
  const client = clientOver(rpc.call);
  const chainId = await getChainId(client);
  if (chainId !== terms.chainId) return [{ field: 'network', expected: String(terms.chainId), found: String(chainId) }];
  const code = await getCode(client, { address: lowerHex(terms.asset) });
  if (code === undefined) return [{ field: 'asset', expected: terms.asset, found: undefined }];

  const questions = ['name', 'version', 'decimals', 'DOMAIN_SEPARATOR'] as const;
  const [name, version, decimals, separator] = await Promise.all(
    questions.map((question) => ask(client, terms.asset, question)),
  );
  const answers: readonly (AssetDifference & { readonly required: boolean })[] = [
    { field: 'assetDecimals', expected: String(terms.assetDecimals), found: decimals, required: true },
    { field: 'assetName', expected: terms.assetName, found: name, required: separator === undefined },
    { field: 'assetVersion', expected: terms.assetVersion, found: version, required: separator === undefined },
    { field: 'domainSeparator', expected: terms.domainSeparator, found: separator, required: false },
  ];
  return answers
    .filter(({ expected, found, required }) => (found === undefined ? required : found !== expected))
    .map(({ field, expected, found }) => ({ field, expected, found }));
}

/** Undefined when the asset does not know the call, or answers it with another type. */
async function ask(
  client: Client,
  asset: string,
  question: 'name' | 'version' | 'decimals' | 'DOMAIN_SEPARATOR',
): Promise<string | undefined> {
  try {
    return String(await askAsset(client, asset, question, []));
  } catch (error) {
    if (error instanceof UndecodableAnswer || (error instanceof RpcRefusal && error.reverted)) return undefined;
    throw error;
  }
}

/** Opens the configured nodes, at least one: as one that asks them in order, and each alone. */
export function openNodes(config: X402Config): { readonly rpc: Rpc; readonly nodes: readonly Rpc[] } {
  const nodes = config.rpcUrls.map((url) => createRpc(url));
  return { rpc: inOrder(nodes, { compare: (node) => requireAsset(node, config) }), nodes };
}
