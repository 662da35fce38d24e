/**
 * A local chain in the place of a public network: with its number, and its token at its address.
 */

import { type Address, type Hex, toHex } from 'viem';
import { type Chain, type ChainAccess, connectChain, startChain } from '../../tools/local-world/chain.ts';

/** A public network and a token of it. */
export interface PublicNetwork {
  readonly chainId: number;
  readonly asset: Address;
  /** Of the EIP-712 domain of the token; at most 31 ASCII characters each. */
  readonly name: string;
  readonly version: string;
}

/** Starts a chain that says of itself what the network does. */
export async function startPublicChain(network: PublicNetwork): Promise<Chain> {
  const chain = await startChain();
  return { ...chain, ...(await poseAs(chain, network)), chainId: network.chainId };
}

/**
 * Gives a chain the number and the token of a network. @returns the chain as seen through that
 * token
 */
export async function poseAs(chain: Chain, { chainId, asset, name, version }: PublicNetwork): Promise<ChainAccess> {
  const code = await chain.request('eth_getCode', [chain.token.address, 'latest']);
  await chain.request('anvil_setCode', [asset, code]);
  // The first two slots of the token.
  for (const [slot, text] of [name, version].entries())
    await chain.request('anvil_setStorageAt', [asset, toHex(slot, { size: 32 }), stored(text)]);
  await chain.request('anvil_setChainId', [chainId]);
  return connectChain(chain.rpcUrl, { ...chain.token, address: asset, name, version });
}

/** A short string as Solidity keeps it: its bytes, and twice their number in the last byte. */
function stored(text: string): Hex {
  const word = Buffer.alloc(32);
  word.write(text, 'ascii');
  word.writeUInt8(text.length * 2, 31);
  return `0x${word.toString('hex')}`;
}
