/**
 * Questions to the chain node through viem's client, over calls with limits of our own. The answers
 * are checked here, because viem formats and decodes them without checks.
 */

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
import { isObject, type Json } from '../../../json/types.ts';
import { ASSET_ABI, lowerHex } from '../evm/eip3009.ts';
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

export class UnreadableAnswer extends Error {
  constructor(what: string) {
    super(`the chain node answered with no readable ${what}`);
    this.name = 'UnreadableAnswer';
  }
}

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

const HASH = /^0x[0-9a-fA-F]{64}$/;

export function isTransactionHash(value: unknown): value is string {
  return typeof value === 'string' && HASH.test(value);
}

/** Names `what` it misses. @throws UnreadableAnswer */
type Reader = (value: Json | undefined, what: string) => Json;

/** In lower case. */
const hex =
  (pattern: RegExp): Reader =>
  (value, what) => {
    if (typeof value !== 'string' || !pattern.test(value)) throw new UnreadableAnswer(what);
    return value.toLowerCase();
  };

const list =
  (item: Reader): Reader =>
  (value, what) => {
    if (!Array.isArray(value)) throw new UnreadableAnswer(what);
    return value.map((one: Json) => item(one, what));
  };

/** These members only: viem lets a log overrule what it decodes from it. */
const object =
  (members: Readonly<Record<string, Reader>>): Reader =>
  (value, what) => {
    if (!isObject(value)) throw new UnreadableAnswer(what);
    return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, member(value[name], name)]));
  };

const orNull =
  (item: Reader): Reader =>
  (value, what) =>
    value === null || value === undefined ? null : item(value, what);

const bytes = hex(/^0x[0-9a-fA-F]*$/);
const address = hex(/^0x[0-9a-fA-F]{40}$/);
const hash = hex(HASH);
const quantity = hex(/^0x[0-9a-fA-F]{1,64}$/);
/** A quantity that a double holds. */
const count = hex(/^0x[0-9a-fA-F]{1,13}$/);
const status = hex(/^0x[01]$/);
const logs = list(
  object({ address, topics: list(hash), data: bytes, logIndex: count, transactionHash: hash, blockNumber: quantity }),
);

const receipt = object({ transactionHash: hash, blockNumber: quantity, status, logs });

/** Every method that is asked, and what is read of its answer. */
const ANSWERS: Readonly<Record<string, Reader>> = {
  eth_call: bytes,
  eth_chainId: count,
  eth_estimateGas: quantity,
  eth_getBalance: quantity,
  eth_getBlockByNumber: object({ hash, number: quantity, timestamp: count, baseFeePerGas: orNull(quantity) }),
  eth_getBlockReceipts: orNull(list(receipt)),
  eth_getCode: bytes,
  eth_getLogs: logs,
  eth_getTransactionByHash: orNull(object({ from: address, input: bytes })),
  eth_getTransactionCount: count,
  eth_getTransactionReceipt: orNull(receipt),
  eth_maxPriorityFeePerGas: quantity,
  // The hash of what is sent is known before.
  eth_sendRawTransaction: () => null,
};

/** The part of an answer that is used. @throws UnreadableAnswer */
function readAnswer(method: string, answer: Json): Json {
  const read = ANSWERS[method];
  if (read === undefined) throw new Error(`${method} is not asked of a chain node`);
  return read(answer, method);
}
