/**
 * JSON-RPC over HTTP to one chain node, and to several in order: readings are repeated after a
 * failure that passes, broadcasts never.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
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

/** Tries of one reading; a node that is down must not use up the second of a look at its health. */
const TRIES = 5;
/** Before the second try of all nodes, milliseconds; it doubles. */
const FIRST_PAUSE_MS = 50;
/** How long another node is asked first after a node failed, milliseconds. */
export const FIRST_NODE_AGAIN_MS = 30_000;
/** A lost answer does not show whether a transaction arrived, so what sent it decides. */
const SENDING = 'eth_sendRawTransaction';

interface NodeOrderDeps {
  /** Compares the asset that a node shows. What a node of another chain shows must never count. */
  readonly compare: (node: Rpc) => Promise<void>;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/**
 * Asks the first node, and the next one for a while after a failure. A transaction is sent once, to
 * the node that the last reading came from.
 * @param nodes At least one. A single node is compared by its owner.
 */
export function inOrder(nodes: readonly Rpc[], { compare, now = () => performance.now() }: NodeOrderDeps): Rpc {
  const compared = new Set(nodes.length === 1 ? nodes : []);
  const { order, failed, answered } = peersInOrder(nodes, FIRST_NODE_AGAIN_MS, now);

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
          const answer = await node.call(method, params, share);
          answered(node);
          return answer;
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
