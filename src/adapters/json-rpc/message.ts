/** Messages of JSON-RPC 2.0, as MCP and A2A read and write them. */

import { JsonError, parseStrictJson } from '../../json/strict.ts';
import { isObject, type Json } from '../../json/types.ts';

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

/** A body as JSON, or why it is refused; then `id` is that of a lenient reading, or null. */
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
