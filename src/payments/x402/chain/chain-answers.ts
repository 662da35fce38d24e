/** Checks what a chain node answers, because viem formats and decodes it without checks. */

import { isObject, type Json } from '../../../json/types.ts';

const HASH = /^0x[0-9a-fA-F]{64}$/;

export class UnreadableAnswer extends Error {
  constructor(what: string) {
    super(`the chain node answered with no readable ${what}`);
    this.name = 'UnreadableAnswer';
  }
}

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
export function readAnswer(method: string, answer: Json): Json {
  const read = ANSWERS[method];
  if (read === undefined) throw new Error(`${method} is not asked of a chain node`);
  return read(answer, method);
}
