/** Parsers of what a chain node answers. All hex comes out in lower case; other shapes throw. */

import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
import type { Log, TransactionReceipt } from './evidence.ts';

const HEX = /^0x[0-9a-fA-F]*$/;
const QUANTITY = /^0x[0-9a-fA-F]{1,64}$/;
const TRANSACTION_HASH = /^0x[0-9a-fA-F]{64}$/;

/** The newest block: `timestamp` in Unix seconds. */
export interface Head {
  readonly number: bigint;
  readonly timestamp: number;
  /** Wei; 0 before EIP-1559. */
  readonly baseFee: bigint;
}

export class UnreadableAnswer extends Error {
  constructor(what: string) {
    super(`the chain node answered with no ${what}`);
    this.name = 'UnreadableAnswer';
  }
}

export function isTransactionHash(value: unknown): value is string {
  return typeof value === 'string' && TRANSACTION_HASH.test(value);
}

/** A number in the spelling of JSON-RPC. */
export function quantity(value: bigint): string {
  return `0x${value.toString(16)}`;
}

/** Hex text of any length. @throws UnreadableAnswer */
export function readHex(value: Json | undefined, what: string): string {
  if (typeof value !== 'string' || !HEX.test(value)) throw new UnreadableAnswer(what);
  return value.toLowerCase();
}

/** A number as nodes write it, or one word of an answer. @throws UnreadableAnswer */
export function readQuantity(value: Json | undefined, what: string): bigint {
  if (typeof value !== 'string' || !QUANTITY.test(value)) throw new UnreadableAnswer(what);
  return BigInt(value);
}

export function readHead(value: Json): Head {
  const block = readObject(value, 'block');
  return {
    number: readQuantity(block['number'], 'block number'),
    timestamp: Number(readQuantity(block['timestamp'], 'block timestamp')),
    baseFee: block['baseFeePerGas'] === undefined ? 0n : readQuantity(block['baseFeePerGas'], 'base fee'),
  };
}

/** A receipt, or undefined for a transaction that is not mined. */
export function readReceipt(value: Json): TransactionReceipt | undefined {
  if (value === null) return undefined;
  const receipt = readObject(value, 'receipt');
  return {
    transactionHash: readHash(receipt['transactionHash']),
    blockNumber: readQuantity(receipt['blockNumber'], 'block number'),
    succeeded: readQuantity(receipt['status'], 'receipt status') === 1n,
    logs: readLogs(receipt['logs']).map(({ log }) => log),
  };
}

/** Sender in lower case and calldata; undefined for a transaction that the node does not show. */
export function readSent(value: Json): { readonly from: string; readonly input: string } | undefined {
  if (value === null) return undefined;
  const transaction = readObject(value, 'transaction');
  return {
    from: readHex(transaction['from'], 'sender').toLowerCase(),
    input: readHex(transaction['input'], 'calldata'),
  };
}

/** Logs, each with the transaction it belongs to. */
export function readLogs(value: Json | undefined): readonly { readonly log: Log; readonly transactionHash: string }[] {
  if (!Array.isArray(value)) throw new UnreadableAnswer('logs');
  return value.map((item: Json) => {
    const log = readObject(item, 'log');
    const topics = log['topics'];
    if (!Array.isArray(topics)) throw new UnreadableAnswer('topics');
    return {
      transactionHash: readHash(log['transactionHash']),
      log: {
        address: readHex(log['address'], 'address'),
        topics: topics.map((topic: Json) => readHex(topic, 'topic')),
        data: readHex(log['data'], 'log content'),
        logIndex: Number(readQuantity(log['logIndex'], 'log index')),
      },
    };
  });
}

/** The transactions that logs belong to, each with its block. */
export function readLogPlaces(
  value: Json | undefined,
): readonly { readonly transactionHash: string; readonly blockNumber: bigint }[] {
  if (!Array.isArray(value)) throw new UnreadableAnswer('logs');
  return value.map((item: Json) => {
    const log = readObject(item, 'log');
    return {
      transactionHash: readHash(log['transactionHash']),
      blockNumber: readQuantity(log['blockNumber'], 'block number'),
    };
  });
}

function readHash(value: Json | undefined): string {
  if (!isTransactionHash(value)) throw new UnreadableAnswer('transaction hash');
  return value.toLowerCase();
}

function readObject(value: Json, what: string): JsonObject {
  if (!isObject(value)) throw new UnreadableAnswer(what);
  return value;
}
