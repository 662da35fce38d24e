/** Questions to the chain node through viem's client, over calls with limits of our own. */

import {
  type Abi,
  type Client,
  type ContractFunctionArgs,
  type ContractFunctionName,
  type ContractFunctionReturnType,
  createClient,
  type EIP1193RequestFn,
  formatTransactionReceipt,
  type Hex,
  type TransactionReceipt as Receipt,
  type RpcTransactionReceipt,
} from 'viem';
import { getBlock } from 'viem/actions';
import { decodeFunctionResult, encodeFunctionData, numberToHex } from 'viem/utils';
import { ASSET_ABI, lowerHex } from '../evm/calldata.ts';
import { readAnswer, UnreadableAnswer } from './chain-answers.ts';
import type { Rpc } from './rpc.ts';

/** The newest block: `timestamp` in Unix seconds. */
export interface Head {
  readonly number: bigint;
  readonly timestamp: number;
  /** Wei; 0 before EIP-1559. */
  readonly baseFee: bigint;
}

/** What is read of a receipt; its logs may be in any order. */
export type TransactionReceipt = Pick<Receipt, 'transactionHash' | 'blockNumber' | 'status' | 'logs'>;

/**
 * A client whose answers are checked. Errors of `call` pass unchanged: a transport of viem's would
 * wrap them in messages that repeat the request, and ask again.
 */
export function clientOver(call: Rpc['call']): Client {
  const request = (async ({ method, params = [] }: { readonly method: string; readonly params?: readonly unknown[] }) =>
    readAnswer(method, await call(method, params))) as EIP1193RequestFn;
  const config = { key: 'node', name: 'chain node', type: 'node', request };
  return createClient({ transport: () => ({ config, request }) });
}

/** @throws when the node does not answer, or has no such block */
export async function readHead(client: Client, block: 'latest' | bigint = 'latest'): Promise<Head> {
  const place = block === 'latest' ? { blockTag: block } : { blockNumber: block };
  const { number, timestamp, baseFeePerGas } = await getBlock(client, place);
  return { number, timestamp: Number(timestamp), baseFee: baseFeePerGas ?? 0n };
}

/** Undefined for a transaction that is not mined. */
export async function readReceipt(client: Client, transaction: string): Promise<TransactionReceipt | undefined> {
  const receipt = await client.request({ method: 'eth_getTransactionReceipt', params: [lowerHex(transaction)] });
  return receipt === null ? undefined : formatTransactionReceipt(receipt);
}

/**
 * The receipts of these transactions in one block; undefined when the node does not have the block.
 * @throws when the node does not answer, or does not know the method
 */
export async function readBlockReceipts(
  call: Rpc['call'],
  block: bigint,
  transactions: readonly string[],
): Promise<readonly TransactionReceipt[] | undefined> {
  const method = 'eth_getBlockReceipts';
  const wanted = new Set(transactions);
  const answer = readAnswer(method, await call(method, [numberToHex(block)])) as
    | readonly RpcTransactionReceipt[]
    | null;
  return answer
    ?.filter(({ transactionHash }) => wanted.has(transactionHash))
    .map((receipt) => formatTransactionReceipt(receipt));
}

type Question = ContractFunctionName<typeof ASSET_ABI, 'view'>;
type Returned<Name extends Question> = ContractFunctionReturnType<typeof ASSET_ABI, 'view', Name>;

/** The asset answered with bytes of another type, or with none. */
export class UndecodableAnswer extends UnreadableAnswer {}

/** Calls a view of the asset. @throws UndecodableAnswer, RpcRefusal, other errors of `call` */
export async function askAsset<Name extends Question>(
  client: Client,
  asset: string,
  functionName: Name,
  args: ContractFunctionArgs<typeof ASSET_ABI, 'view', Name>,
  block: 'latest' | Hex | { readonly blockHash: Hex } = 'latest',
): Promise<Returned<Name>> {
  const abi: Abi = ASSET_ABI;
  const question = { abi, functionName: functionName as string, args: args as readonly unknown[] };
  const call = { to: lowerHex(asset), data: encodeFunctionData(question) };
  const data = await client.request({ method: 'eth_call', params: [call, block] });
  try {
    return decodeFunctionResult({ ...question, data }) as Returned<Name>;
  } catch {
    throw new UndecodableAnswer(functionName);
  }
}
