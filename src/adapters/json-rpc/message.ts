/** Messages of JSON-RPC 2.0, as MCP and A2A read and write them. */

import type { Response } from 'express';
import { isObject, type Json, JsonError, parseStrictJson } from '../../json/json.ts';
import type { PaymentResponse } from '../../payments/x402/wire/types.ts';
import type { Relayed, RelayOptions } from '../../pipeline/call.ts';
import { noteOutcome } from '../../server/http/access-record.ts';
import { sendText } from '../../server/http/respond.ts';
import { isSent, NOTHING_SENT } from '../http/response-writer.ts';

/** The id of a request. It is echoed with its JSON type; 0 and the empty text are legal ids. */
export type RpcId = string | number;

/** The codes of JSON-RPC 2.0, section 5.1. */
export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;

/** An `error` member. `data` as its protocol defines it. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** A response with a result that is JSON text already. */
export function resultText(id: RpcId, result: string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
}

/** A response with an error; `id` is null when the request had none that could be read. */
export function errorText(id: RpcId | null, { code, message, data }: RpcError): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } });
}

/** A body as JSON, or why it is refused. `id`: read leniently from a refused body, or null. */
type BodyReading =
  | { readonly ok: true; readonly value: Json }
  | {
      readonly ok: false;
      readonly id: RpcId | null;
      readonly code: typeof PARSE_ERROR | typeof INVALID_REQUEST;
      readonly message: string;
    };

/** Parses a body. JSON that is ambiguous or too large (`JsonError`) is an invalid request. */
export function readBody(bytes: Uint8Array): BodyReading {
  try {
    return { ok: true, value: parseStrictJson(bytes) };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const code = error.reason === 'malformed_json' ? PARSE_ERROR : INVALID_REQUEST;
    return { ok: false, id: idOf(error.document), code, message: error.message };
  }
}

/** The id of a refused document, or null. An unsafe integer is not the number that was sent. */
function idOf(document: Json | undefined): RpcId | null {
  const id = isObject(document) ? document['id'] : undefined;
  return typeof id === 'string' || (typeof id === 'number' && Number.isSafeInteger(id)) ? id : null;
}

const HEAD = { 'content-type': 'application/json', 'cache-control': 'no-store' } as const;

/**
 * Sends one message. It may hold a challenge or a bought answer, so caches must not store it. Does
 * nothing when the caller is gone.
 */
export function sendRpc(res: Response, status: number, text: string | Buffer): void {
  sendText(res, status, HEAD, text);
}

/** Refuses a message before it becomes a call; the code of the error is the outcome in the log. */
export function sendRpcError(res: Response, status: number, id: RpcId | null, error: RpcError): void {
  noteOutcome(res, `${error.code}`);
  sendRpc(res, status, errorText(id, error));
}

/** Sends an answer once `sending` resolves; `finished`: the operating system has the last byte. */
export async function sendRpcWatched(res: Response, text: string, sending?: RelayOptions['sending']): Promise<Relayed> {
  if (sending !== undefined && !res.destroyed && !(await sending())) res.destroy();
  if (res.destroyed) return { kind: 'client_gone', sent: NOTHING_SENT };
  sendRpc(res, 200, text);
  if (await isSent(res)) return { kind: 'finished' };
  const bytes = Buffer.byteLength(text);
  return { kind: 'client_gone', sent: { begun: true, bytes, of: bytes } };
}

/** Members of a metadata object, each value as JSON text. */
export type Members = Readonly<Record<string, string>>;

/** The members of an object; their names are constants of the gateway and need no escape. */
export function membersText(members: Members): string {
  let written = '';
  for (const name in members) written += `${written === '' ? '' : ','}"${name}":${members[name]}`;
  return written;
}

interface CallNames {
  readonly requestId: string;
  readonly resourceId: string;
}

/** The metadata of an answer, beside its content. */
interface Annotations {
  /** The id of a call in logs, events and receipts. */
  readonly requestId?: string;
  /** The payment, for agents (mcp 5, and a2a 4 under the same name). */
  readonly payment?: PaymentResponse | undefined;
  /** The signed receipt of a mandate (ap2 13). */
  readonly mandateReceipt?: string | undefined;
  /** The signed statement of a delivery. */
  readonly statement?: string | undefined;
}

/** The members of the annotations that are present, each value as JSON text. */
export function annotationMembers({ requestId, payment, mandateReceipt, statement }: Annotations): Members {
  const members: Record<string, string> = {};
  if (requestId !== undefined) members['agent-commerce/requestId'] = JSON.stringify(requestId);
  if (payment !== undefined) members['x402/payment-response'] = JSON.stringify(payment);
  if (mandateReceipt !== undefined) members['agent-commerce/authorizationReceipt'] = JSON.stringify(mandateReceipt);
  if (statement !== undefined) members['agent-commerce/deliveryStatement'] = JSON.stringify(statement);
  return members;
}

/** The summary of a delivery (specification 3). `status`: the backend's. */
export function deliveryMember(
  { requestId, resourceId }: CallNames,
  status: number,
  { payment, replayed }: { readonly payment?: PaymentResponse; readonly replayed?: boolean },
): Members {
  const again = replayed === true ? { replayed } : {};
  const paid = payment === undefined ? {} : { payment: summaryOf(payment) };
  return { 'agent-commerce/delivery': JSON.stringify({ requestId, resourceId, status, ...again, ...paid }) };
}

/** The payment without its signed documents, which stand beside it. */
function summaryOf(payment: PaymentResponse): PaymentResponse {
  const { extensions: _signed, ...summary } = payment;
  return summary;
}
