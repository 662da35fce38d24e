/** JSON-RPC over HTTP to the chain node, for every reading and for the local rail's broadcasts. */

import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
import { createJsonPeer, OversizedAnswer } from './http-json.ts';

/** Largest answer that is read, bytes: several times the receipt of a full batch. */
const MAX_ANSWER_BYTES = 1_048_576;
/** Longest wait for one answer, milliseconds. */
export const RPC_DEADLINE_MS = 3_000;
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
  /** Of HTTP. */
  readonly status: number;

  constructor(method: string, code: number, message: string, reverted: boolean, status = 200) {
    super(`${method}: ${message}`);
    this.name = 'RpcRefusal';
    this.code = code;
    this.reverted = reverted;
    this.status = status;
  }
}

/** Something before the node takes no request of this size, so it has not worked on the call. */
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

/** The node has not worked on the call: it limits how much this caller may ask. */
export function limitsCaller(error: unknown): boolean {
  if (!(error instanceof RpcRefusal)) return false;
  return (LIMIT_CODES.includes(error.code) && !/gas|size/i.test(error.message)) || LIMIT_TEXT.test(error.message);
}

/**
 * How often an error of a reading comes again. `always`: it is what the chain or the question
 * gives; `here`: this node refuses, another one may not; `passing`: silence, a limit, a fault.
 */
export function recurrenceOf(error: unknown): 'always' | 'here' | 'passing' {
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

/** What a failed call of the node means, for causes in the log. */
export function nodeFailure(error: unknown): string {
  return error instanceof Error ? error.message : 'the chain node failed';
}

function refusal(method: string, error: JsonObject, status: number): RpcRefusal {
  const code = typeof error['code'] === 'number' ? error['code'] : 0;
  const message = typeof error['message'] === 'string' ? error['message'] : 'error without message';
  const reverted = code === REVERTED || /revert|out of gas/i.test(message);
  return new RpcRefusal(method, code, message, reverted, status);
}
