/**
 * The chain node: calls of JSON-RPC with limits of our own, over several nodes in order. Readings
 * are repeated after a failure that passes, broadcasts never. Answers to the client of viem are
 * checked here, because viem decodes them without checks.
 */

import { setTimeout as delay } from 'node:timers/promises';
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
import { isObject, type Json, type JsonObject } from '../../../json/json.ts';
import { ASSET_ABI, lowerHex } from '../evm/eip3009.ts';
import { createJsonPeer, OversizedAnswer, peersInOrder } from './http-json.ts';

/** Largest answer that is read, bytes: several times the receipt of a full batch. */
const MAX_ANSWER_BYTES = 1_048_576;
/** Longest wait for one answer, milliseconds. */
const RPC_DEADLINE_MS = 3_000;
/** Longest time for one reading, milliseconds: all its calls together. */
export const READING_DEADLINE_MS = 3_000;
/** RFC 9110, 15.6. */
const FIRST_SERVER_FAULT = 500;
/** JSON-RPC's code for a fault inside the node. */
const INTERNAL_FAULT = -32_603;
/** RFC 9110, 15.5.14. */
const CONTENT_TOO_LARGE = 413;
/** Geth's code for a call that reverted; other nodes state it in the message. */
const REVERTED = 3;
/** EIP-1474's code for a limit, which some nodes give for the gas of a call too, and HTTP's. */
const LIMIT_CODES: readonly number[] = [-32_005, 429];
const LIMIT_TEXT = /too many requests|(?:rate|request|requests per second) ?limit|throttl|compute units/i;
/** JSON-RPC's code for an unknown method, and EIP-1474's for one that is not supported. */
const LACKING_CODES: readonly number[] = [-32_601, -32_004];
const LACKING_TEXT = /method.{0,40}(?:not (?:found|supported|available|exist)|unsupported)|unsupported method/i;

/** The node answered with an error. `reverted`: the call itself failed, for good. */
export class RpcRefusal extends Error {
  readonly code: number;
  readonly reverted: boolean;
  /** The status of HTTP. */
  readonly status: number;

  constructor(method: string, code: number, message: string, reverted: boolean, status = 200) {
    super(`${method}: ${message}`);
    this.name = 'RpcRefusal';
    this.code = code;
    this.reverted = reverted;
    this.status = status;
  }
}

/** The node, or a proxy before it, takes no request of this size: it has not worked on the call. */
export class OversizedRequest extends Error {
  constructor(method: string) {
    super(`${method}: the request is too large (413)`);
    this.name = 'OversizedRequest';
  }
}

export interface Rpc {
  /** Resolves to `result`. @throws RpcRefusal for an error answer, else another error */
  call(method: string, params: readonly unknown[], deadlineMs?: number): Promise<Json>;
  close(): Promise<void>;
}

/** Opens no connection before the first call. */
export function createRpc(url: string): Rpc {
  const peer = createJsonPeer(url, MAX_ANSWER_BYTES);
  let lastId = 0;
  return {
    async call(method, params, deadlineMs = RPC_DEADLINE_MS) {
      lastId += 1;
      const body = { jsonrpc: '2.0', id: lastId, method, params };
      const { status, json } = await peer.exchange({ method: 'POST', path: '', body, deadlineMs });
      if (isObject(json) && isObject(json['error'])) throw refusal(method, json['error'], status);
      if (status === CONTENT_TOO_LARGE) throw new OversizedRequest(method);
      if (!isObject(json) || json['result'] === undefined) throw new Error(`${method}: no JSON-RPC answer (${status})`);
      return json['result'];
    },
    close: () => peer.close(),
  };
}

/** Whether the node has not worked on the call, because it limits its callers. */
export function limitsCaller(error: unknown): boolean {
  if (!(error instanceof RpcRefusal)) return false;
  return (LIMIT_CODES.includes(error.code) && !/gas|size/i.test(error.message)) || LIMIT_TEXT.test(error.message);
}

/**
 * The recurrence of an error of a reading. `always`: the chain or the question causes it; `here`:
 * this node refuses, another one may not; `passing`: silence, a limit, a fault.
 */
function recurrenceOf(error: unknown): 'always' | 'here' | 'passing' {
  if (error instanceof OversizedRequest || error instanceof OversizedAnswer || lacksMethod(error)) return 'always';
  if (!(error instanceof RpcRefusal)) return 'passing';
  if (error.reverted) return 'always';
  return error.code === INTERNAL_FAULT || error.status >= FIRST_SERVER_FAULT || limitsCaller(error)
    ? 'passing'
    : 'here';
}

/** The node answered that it has no such method. */
export function lacksMethod(error: unknown): boolean {
  if (!(error instanceof RpcRefusal)) return false;
  return LACKING_CODES.includes(error.code) || LACKING_TEXT.test(error.message);
}

/** The message of a failed call of the node, for causes in the log. */
export function nodeFailure(error: unknown): string {
  return error instanceof Error ? error.message : 'the chain node failed';
}

function refusal(method: string, error: JsonObject, status: number): RpcRefusal {
  const code = typeof error['code'] === 'number' ? error['code'] : 0;
  const message = typeof error['message'] === 'string' ? error['message'] : 'error without message';
  const reverted = code === REVERTED || /revert|out of gas/i.test(message);
  return new RpcRefusal(method, code, message, reverted, status);
}

/** Tries of one reading: the pauses between them fit into the second that readiness waits. */
const TRIES = 5;
/** Pause before all nodes are asked a second time, milliseconds; it doubles each time. */
const FIRST_PAUSE_MS = 50;
/** How long another node is asked first after a node failed, milliseconds. */
export const FIRST_NODE_AGAIN_MS = 30_000;
/** A lost answer does not show whether a transaction arrived, so its sender decides. */
const SENDING = 'eth_sendRawTransaction';

interface NodeOrderDeps {
  /** Compares the asset that a node shows. Answers of a node of another chain must never count. */
  readonly compare: (node: Rpc) => Promise<void>;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/**
 * Asks the first node, and the next one for a while after a failure. A transaction is sent once, to
 * the node that is first at that moment.
 * @param nodes At least one. The owner of a single node compares it.
 */
export function inOrder(nodes: readonly Rpc[], { compare, now = () => performance.now() }: NodeOrderDeps): Rpc {
  const compared = new Set(nodes.length === 1 ? nodes : []);
  const { order, failed } = peersInOrder(nodes, FIRST_NODE_AGAIN_MS, now);

  return {
    async call(method, params, deadlineMs = RPC_DEADLINE_MS) {
      const endsAt = now() + deadlineMs;
      for (let tried = 1, pause = FIRST_PAUSE_MS; ; tried += 1) {
        const [node] = order() as readonly [Rpc];
        // A silent node leaves time for those behind it.
        const share = Math.max(1, (endsAt - now()) / Math.max(1, nodes.length - tried + 1));
        try {
          if (!compared.has(node)) {
            await compare(node);
            compared.add(node);
          }
          return await node.call(method, params, share);
        } catch (error) {
          const recurrence = recurrenceOf(error);
          if (recurrence === 'always') throw error;
          failed(node);
          const tries = recurrence === 'here' ? nodes.length : Math.max(TRIES, nodes.length);
          if (method === SENDING || tried >= tries) throw error;
          if (tried % nodes.length > 0) continue;
          if (now() + pause >= endsAt) throw error;
          await delay(pause);
          pause *= 2;
        }
      }
    },
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}

/** The newest block: `timestamp` in Unix seconds. */
export interface Head {
  readonly number: bigint;
  readonly timestamp: number;
  /** Wei; 0 before EIP-1559. */
  readonly baseFee: bigint;
}

/** The members of a receipt that are read; its logs may be in any order. */
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

/** Reads a value; `what` names it in the error. @throws UnreadableAnswer */
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

/** Keeps these members only: others of a log would overrule what viem decodes from it. */
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

/** Every method that the gateway calls, with the reader of its answer. */
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
  // The caller knows the hash before it sends.
  eth_sendRawTransaction: () => null,
};

/** The part of an answer that is used. @throws UnreadableAnswer */
function readAnswer(method: string, answer: Json): Json {
  const read = ANSWERS[method];
  if (read === undefined) throw new Error(`${method} is not asked of a chain node`);
  return read(answer, method);
}
