/** The local chain: anvil with the token, Multicall3 and a relayer. */

import { randomBytes } from 'node:crypto';
import { encodeDeployData, encodeFunctionData, getAddress, type Hex, hexToBigInt, toHex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { LOCAL_CHAIN_ID, LOCAL_TOKEN } from '../../src/payments/pricing/networks.ts';
import { startAnvil } from './anvil.ts';
import type { Ending } from './child.ts';
import { CONTRACTS, MULTICALL3_ADDRESS, TOKEN_ABI } from './contracts.ts';
import { rpc } from './rpc.ts';
import { TOKEN_DEPLOYER, type Token } from './token.ts';

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
  /** Resolves when its process has ended, for whatever reason. */
  readonly ended: Promise<Ending>;
  stop(): Promise<void>;
}

const GAS_FUNDS_WEI = 10n ** 19n;
/** Between two looks for a receipt; with instant mining the first one finds it. */
const RECEIPT_POLL_MS = 25;
const RECEIPT_TIMEOUT_MS = 15_000;

/**
 * Starts a chain in some 200 ms: the token at its address, Multicall3 at its canonical one, the
 * relayer funded with gas. `port`: 0 takes any free one. `state`: a file that keeps its blocks, for
 * a restart by `startAnvil`. `chainId`: that of development chains unless given.
 */
export async function startChain(port = 0, state?: string, chainId = LOCAL_CHAIN_ID): Promise<Chain> {
  const anvil = await startAnvil(port, state, chainId);
  try {
    const relayerKey = generatePrivateKey();
    await rpc(anvil.rpcUrl, 'anvil_setCode', [MULTICALL3_ADDRESS, CONTRACTS.contracts.Multicall3.deployedBytecode]);
    await fundGas(anvil.rpcUrl, privateKeyToAddress(relayerKey));
    await fundGas(anvil.rpcUrl, TOKEN_DEPLOYER);
    const { abi, bytecode } = CONTRACTS.contracts.Eip3009Token;
    const creation = encodeDeployData({ abi, bytecode, args: [LOCAL_TOKEN.name, LOCAL_TOKEN.version] });
    await mined(anvil.rpcUrl, await sendAs(anvil.rpcUrl, TOKEN_DEPLOYER, undefined, creation));
    return { ...connectChain(anvil.rpcUrl), chainId, relayerKey, pid: anvil.pid, ended: anvil.ended, stop: anvil.stop };
  } catch (error) {
    await anvil.stop();
    throw error;
  }
}

/** Joins a chain that `startChain` started, maybe in another process, by that or another token. */
export function connectChain(rpcUrl: string, token: Token = LOCAL_TOKEN): ChainAccess {
  const { address } = token;
  const send = async (from: string, to: string | undefined, call: Hex): Promise<Hex> => {
    const hash = await sendAs(rpcUrl, from, to, call);
    await mined(rpcUrl, hash);
    return hash;
  };
  return {
    rpcUrl,
    chainId: LOCAL_CHAIN_ID,
    token,
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
}

async function mined(rpcUrl: string, hash: Hex): Promise<void> {
  const deadline = Date.now() + RECEIPT_TIMEOUT_MS;
  for (;;) {
    const receipt = (await rpc(rpcUrl, 'eth_getTransactionReceipt', [hash])) as MinedReceipt | null;
    if (receipt?.status === '0x1') return;
    if (receipt !== null) throw new Error(`transaction ${hash} reverted`);
    if (Date.now() > deadline) throw new Error(`transaction ${hash} was not mined in ${RECEIPT_TIMEOUT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, RECEIPT_POLL_MS));
  }
}
