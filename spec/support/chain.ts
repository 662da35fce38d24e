/** The local chain: anvil with the token, Multicall3 and a relayer. */

import { randomBytes } from 'node:crypto';
import { type Address, encodeDeployData, encodeFunctionData, getAddress, type Hex, hexToBigInt, toHex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { LOCAL_CHAIN_ID, startAnvil } from './anvil.ts';
import { CONTRACTS, MULTICALL3_ADDRESS, TOKEN_ABI } from './contracts.ts';
import { rpc } from './rpc.ts';

/** The EIP-3009 token of a chain, with the EIP-712 domain its authorizations are signed for. */
export interface Token {
  readonly address: Address;
  readonly name: string;
  readonly version: string;
  readonly decimals: 6;
}

/** What can be done with a running chain, also one of another process. */
export interface ChainAccess {
  readonly rpcUrl: string;
  readonly chainId: number;
  readonly token: Token;
  /** Gives `units` base units of the token; resolves when mined. */
  mint(address: string, units: bigint): Promise<void>;
  /** Sets the balance of the coin that pays gas, 10 of it. */
  fundGas(address: string): Promise<void>;
  /** Base units of the token in the newest block. */
  balanceOf(address: string): Promise<bigint>;
  /**
   * Sends a transaction from any address (impersonated, one at a time each); resolves to its hash
   * when mined.
   */
  send(from: string, to: string | undefined, call: Hex): Promise<Hex>;
  /** Raw JSON-RPC. @throws RpcError */
  request(method: string, params: readonly unknown[]): Promise<unknown>;
}

/** A chain that this process started: anvil, the token, Multicall3 and a relayer. */
export interface Chain extends ChainAccess {
  /** A fresh key that holds gas and nothing else. */
  readonly relayerKey: Hex;
  readonly pid: number;
  stop(): Promise<void>;
}

const TOKEN_NAME = 'Test USD';
const TOKEN_VERSION = '2';
const GAS_FUNDS_WEI = 10n ** 19n;
/** Between two looks for a receipt; with instant mining the first one finds it. */
const RECEIPT_POLL_MS = 25;
const RECEIPT_TIMEOUT_MS = 15_000;

/** A public network, of which the local chain takes the number and the token. */
export interface PublicNetwork {
  readonly chainId: number;
  readonly asset: Address;
  readonly name: string;
  readonly version: string;
}

const LOCAL_NETWORK = { chainId: LOCAL_CHAIN_ID, asset: undefined, name: TOKEN_NAME, version: TOKEN_VERSION };

/**
 * Starts a chain in some 200 ms: token deployed, Multicall3 at its canonical address, relayer
 * funded with gas. `network`: what it is in the place of.
 */
export async function startChain(network?: PublicNetwork): Promise<Chain> {
  const { chainId, asset, name, version } = network ?? LOCAL_NETWORK;
  const anvil = await startAnvil(chainId);
  try {
    const relayerKey = generatePrivateKey();
    const deployer = privateKeyToAddress(generatePrivateKey());
    await rpc(anvil.rpcUrl, 'anvil_setCode', [MULTICALL3_ADDRESS, CONTRACTS.contracts.Multicall3.deployedBytecode]);
    await fundGas(anvil.rpcUrl, privateKeyToAddress(relayerKey));
    await fundGas(anvil.rpcUrl, deployer);
    const { abi, bytecode } = CONTRACTS.contracts.Eip3009Token;
    const creation = encodeDeployData({ abi, bytecode, args: [name, version] });
    const receipt = await mined(anvil.rpcUrl, await sendAs(anvil.rpcUrl, deployer, undefined, creation));
    const deployed = getAddress(receipt.contractAddress ?? '');
    if (asset !== undefined) await copyToken(anvil.rpcUrl, deployed, asset);
    const access = connectChain(anvil.rpcUrl, asset ?? deployed, { chainId, name, version });
    return { ...access, relayerKey, pid: anvil.pid, stop: anvil.stop };
  } catch (error) {
    await anvil.stop();
    throw error;
  }
}

/** Puts the token at another address: its code, and its name and version, the first two slots. */
async function copyToken(rpcUrl: string, from: Address, to: Address): Promise<void> {
  await rpc(rpcUrl, 'anvil_setCode', [to, await rpc(rpcUrl, 'eth_getCode', [from, 'latest'])]);
  for (const slot of [toHex(0, { size: 32 }), toHex(1, { size: 32 })])
    await rpc(rpcUrl, 'anvil_setStorageAt', [to, slot, await rpc(rpcUrl, 'eth_getStorageAt', [from, slot, 'latest'])]);
}

/** Joins a chain that `startChain` started, maybe in another process. */
export function connectChain(
  rpcUrl: string,
  tokenAddress: string,
  { chainId, name, version }: Omit<PublicNetwork, 'asset'> = LOCAL_NETWORK,
): ChainAccess {
  const address = getAddress(tokenAddress);
  const send = async (from: string, to: string | undefined, call: Hex): Promise<Hex> => {
    const hash = await sendAs(rpcUrl, from, to, call);
    await mined(rpcUrl, hash);
    return hash;
  };
  return {
    rpcUrl,
    chainId,
    token: { address, name, version, decimals: 6 },
    send,
    request: (method, params) => rpc(rpcUrl, method, params),
    fundGas: (account) => fundGas(rpcUrl, account),
    mint: async (account, units) => {
      const args = [getAddress(account), units] as const;
      // A sender of its own for each: anvil gives one nonce twice when an account sends side by
      // side.
      const sender = toHex(randomBytes(20));
      await fundGas(rpcUrl, sender);
      await send(sender, address, encodeFunctionData({ abi: TOKEN_ABI, functionName: 'mint', args }));
    },
    balanceOf: async (account) => {
      const call = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'balanceOf', args: [getAddress(account)] });
      return hexToBigInt((await rpc(rpcUrl, 'eth_call', [{ to: address, data: call }, 'latest'])) as Hex);
    },
  };
}

async function fundGas(rpcUrl: string, address: string): Promise<void> {
  await rpc(rpcUrl, 'anvil_setBalance', [address, toHex(GAS_FUNDS_WEI)]);
}

async function sendAs(rpcUrl: string, from: string, to: string | undefined, call: Hex): Promise<Hex> {
  const transaction = { from, data: call, ...(to === undefined ? {} : { to }) };
  return (await rpc(rpcUrl, 'eth_sendTransaction', [transaction])) as Hex;
}

interface MinedReceipt {
  readonly status: Hex;
  readonly contractAddress: string | null;
}

async function mined(rpcUrl: string, hash: Hex): Promise<MinedReceipt> {
  const deadline = Date.now() + RECEIPT_TIMEOUT_MS;
  for (;;) {
    const receipt = (await rpc(rpcUrl, 'eth_getTransactionReceipt', [hash])) as MinedReceipt | null;
    if (receipt?.status === '0x1') return receipt;
    if (receipt !== null) throw new Error(`transaction ${hash} reverted`);
    if (Date.now() > deadline) throw new Error(`transaction ${hash} was not mined in ${RECEIPT_TIMEOUT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, RECEIPT_POLL_MS));
  }
}
