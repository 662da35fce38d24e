/** Compares the configured asset with the chain, before anything is sold or written for it. */

import { WORD_BYTES } from '../evm/abi-words.ts';
import { SELECTORS } from '../evm/calldata.ts';
import type { X402Config } from '../wire/settings.ts';
import { readHex, readQuantity } from './chain-answers.ts';
import { type Rpc, RpcRefusal } from './rpc.ts';

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
 * silently, wrong decimals every price wrong. A call that the asset does not know (some have no
 * `version()`) is left to the separator.
 * @throws when the node does not answer
 */
export async function checkAsset(rpc: Rpc, terms: AssetTerms): Promise<readonly AssetDifference[]> {
  const chainId = readQuantity(await rpc.call('eth_chainId', []), 'chain id').toString();
  if (chainId !== String(terms.chainId)) return [{ field: 'network', expected: String(terms.chainId), found: chainId }];
  const code = readHex(await rpc.call('eth_getCode', [terms.asset, 'latest']), 'code');
  if (code === '0x') return [{ field: 'asset', expected: terms.asset, found: undefined }];

  const [name, version, decimals, separator] = await Promise.all(
    [SELECTORS.name, SELECTORS.version, SELECTORS.decimals, SELECTORS.domainSeparator].map((selector) =>
      ask(rpc, terms.asset, selector),
    ),
  );
  const answers: readonly (AssetDifference & { readonly required: boolean })[] = [
    { field: 'assetDecimals', expected: String(terms.assetDecimals), found: integer(decimals), required: true },
    { field: 'assetName', expected: terms.assetName, found: text(name), required: separator === undefined },
    { field: 'assetVersion', expected: terms.assetVersion, found: text(version), required: separator === undefined },
    { field: 'domainSeparator', expected: terms.domainSeparator, found: separator, required: false },
  ];
  return answers
    .filter(({ expected, found, required }) => (found === undefined ? required : found !== expected))
    .map(({ field, expected, found }) => ({ field, expected, found }));
}

/** Undefined when the asset does not know the call. */
async function ask(rpc: Rpc, asset: string, selector: string): Promise<string | undefined> {
  try {
    const answer = readHex(await rpc.call('eth_call', [{ to: asset, data: selector }, 'latest']), 'call result');
    return answer === '0x' ? undefined : answer;
  } catch (error) {
    if (error instanceof RpcRefusal && error.reverted) return undefined;
    throw error;
  }
}

function integer(answer: string | undefined): string | undefined {
  return answer === undefined ? undefined : readQuantity(answer, 'number').toString();
}

/** A returned string: offset, length, content; undefined for other bytes. */
function text(answer: string | undefined): string | undefined {
  if (answer === undefined) return undefined;
  const bytes = Buffer.from(answer.slice(2), 'hex');
  if (bytes.length < 2 * WORD_BYTES) return undefined;
  const length = bytes.readUInt32BE(2 * WORD_BYTES - 4);
  return bytes.subarray(2 * WORD_BYTES, 2 * WORD_BYTES + length).toString('utf8');
}
