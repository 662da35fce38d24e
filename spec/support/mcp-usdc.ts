/** Makes the local chain look like Base Sepolia with its USDC. */

import { getAddress, type Hex, pad, stringToHex, toHex } from 'viem';
import { KNOWN_NETWORKS } from '../../src/payments/pricing/networks.ts';
import { type Chain, type ChainAccess, connectChain } from '../../tools/local-world/chain.ts';
import type { ConfigObject } from './config.ts';

/** The network that the local chain claims to be. */
export const NETWORK = 'eip155:84532';
const BASE_SEPOLIA_ID = 84_532;
/** Storage slots of `name` and `version` in tools/local-world/contracts/Eip3009Token.sol. */
const NAME_SLOT = 0;
const VERSION_SLOT = 1;

/**
 * Gives a local chain the id and the USDC of Base Sepolia: wallets with their published limits pay
 * with no other token, and these limits cannot be lifted in every client. Resolves to the chain
 * seen through that token.
 */
export async function poseAsBaseSepolia(chain: Chain): Promise<ChainAccess> {
  const { address, name, version } = usdc();
  const code = await chain.request('eth_getCode', [chain.token.address, 'latest']);
  await chain.request('anvil_setCode', [address, code]);
  await chain.request('anvil_setStorageAt', [address, slot(NAME_SLOT), shortString(name)]);
  await chain.request('anvil_setStorageAt', [address, slot(VERSION_SLOT), shortString(version)]);
  await chain.request('anvil_setChainId', [BASE_SEPOLIA_ID]);
  return connectChain(chain.rpcUrl, { ...chain.token, address: getAddress(address), name, version });
}

/** Overrides of a gateway on that chain, as an operator writes them for Base Sepolia. */
export function baseSepolia(): ConfigObject {
  const { address, name, version } = usdc();
  return {
    payments: { x402: { network: NETWORK, asset: address, assetName: name, assetVersion: version, currency: 'USDC' } },
  };
}

function usdc() {
  const asset = KNOWN_NETWORKS.get(NETWORK)?.usdc;
  if (asset === undefined) throw new Error(`${NETWORK} has no USDC`);
  return asset;
}

function slot(number: number): Hex {
  return toHex(number, { size: 32 });
}

/**
 * A string of fewer than 32 bytes as Solidity stores it: its bytes, and twice their number in the
 * last one.
 */
function shortString(text: string): Hex {
  const bytes = stringToHex(text);
  const length = toHex(text.length * 2, { size: 1 });
  return `${pad(bytes, { dir: 'right', size: 31 })}${length.slice(2)}`;
}
