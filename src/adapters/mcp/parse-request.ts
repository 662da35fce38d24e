/**
 * Reads an MCP message with its headers, check by check, and decides its era: one path serves both.
 */

import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import type { MirroredParameter } from '../../resources/tool-form.ts';
import type { HeaderReading } from '../../server/http/request.ts';
import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  type RpcError,
  type RpcId,
  readBody,
} from '../json-rpc/message.ts';

/** The revision with per-request metadata and without sessions; the only one of its era. */
export const MODERN_VERSION = '2026-07-28';
/** Revisions with `initialize`, newest first. No version header means 2025-03-26. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26'];

/** Decided from the content of each request: the gateway keeps nothing between two of them. */
export type Era = 'legacy' | 'modern';

/** Versions are dates, which sort as texts. */
function isModern(version: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= MODERN_VERSION;
}

/** Members of `_meta` in the modern era (2026-07-28, basic/index, `_meta`). */
const META_VERSION = 'io.modelcontextprotocol/protocolVersion';
const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

/** Reads a header by its lower-case name. */
type HeaderOf = (name: string) => HeaderReading;

/** The headers do not repeat the body (2026-07-28, "Server Validation"). */
const HEADER_MISMATCH = -32020;
/** The version is not served (2026-07-28, `UnsupportedProtocolVersionError`). */
const UNSUPPORTED_VERSION = -32022;

const METHODS = {
  legacy: ['initialize', 'ping', 'tools/list', 'tools/call'],
  modern: ['server/discover', 'tools/list', 'tools/call'],
} as const satisfies Readonly<Record<Era, readonly string[]>>;
type Method = (typeof METHODS)[Era][number];

const ENCODED = /^=\?base64\?(.*)\?=$/s;
const DECIMAL = /^-?\d+(?:\.\d+)?$/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export interface McpRequest {
  readonly era: Era;
  readonly id: RpcId;
  readonly method: Method;
  readonly params: JsonObject;
  /** `params._meta`, or an empty object. */
  readonly meta: JsonObject;
}

/** The reading of a POST. `status`: the HTTP status. */
type McpReading =
  | { readonly kind: 'request'; readonly request: McpRequest }
  | { readonly kind: 'notification' }
  | { readonly kind: 'refused'; readonly status: 200 | 400 | 404; readonly id: RpcId | null; readonly error: RpcError };

/** The checks between HTTP and the methods, in their order. */
export function readMessage(bytes: Uint8Array, headerOf: HeaderOf): McpReading {
  const body = readBody(bytes);
  if (!body.ok) return refused(body.id, { code: body.code, message: body.message });
  const message = body.value;
  if (Array.isArray(message))
    return refused(null, { code: INVALID_REQUEST, message: 'Batches are not served. Send one message in each POST.' });
  if (!isObject(message)) return refused(null, invalid('The body must be one JSON-RPC object.'));
  const { id, method } = message;
  const known = isId(id) ? id : null;
  if (message['jsonrpc'] !== '2.0') return refused(known, invalid('The member jsonrpc must be "2.0".'));
  if (typeof method !== 'string') return refused(known, invalid('The member method must be a string.'));
  if (id === undefined) return { kind: 'notification' };
  if (!isId(id)) return refused(null, invalid('The member id must be a string or an integer.'));
  return readRequest(id, method, message['params'], headerOf);
}

function readRequest(id: RpcId, method: string, given: Json | undefined, headerOf: HeaderOf): McpReading {
  if (given !== undefined && !isObject(given)) return refused(id, badParams('params must be an object.'));
  const params = given ?? {};
  const meta = isObject(params['_meta']) ? params['_meta'] : {};
  const version = headerOf('mcp-protocol-version');
  const named = version.kind === 'single' ? version.value : undefined;
  const modern = META_VERSION in meta || (named !== undefined && isModern(named));
  const error = modern ? modernFault(method, params, meta, headerOf) : legacyFault(version.kind, named);
  if (error !== undefined) return refused(id, error);
  const era: Era = modern ? 'modern' : 'legacy';
  const served = METHODS[era].find((name) => name === method);
  if (served === undefined)
    return {
      kind: 'refused',
      status: modern ? 404 : 200,
      id,
      error: { code: METHOD_NOT_FOUND, message: 'Method not found. This server offers tools.' },
    };
  return { kind: 'request', request: { era, id, method: served, params, meta } };
}

function legacyFault(kind: string, named: string | undefined): RpcError | undefined {
  if (kind === 'absent' || (named !== undefined && LEGACY_VERSIONS.includes(named))) return undefined;
  const served = [MODERN_VERSION, ...LEGACY_VERSIONS];
  return { ...invalid('This MCP-Protocol-Version is not served.'), data: { supported: served } };
}

/** The checks of the modern era: metadata, version, and the headers that repeat the body. */
function modernFault(method: string, params: JsonObject, meta: JsonObject, headerOf: HeaderOf): RpcError | undefined {
  const claimed = meta[META_VERSION];
  if (typeof claimed !== 'string') return badParams(`params._meta needs "${META_VERSION}", a string.`);
  if (!isObject(meta[META_CAPABILITIES])) return badParams(`params._meta needs "${META_CAPABILITIES}", an object.`);
  const version = headerOf('mcp-protocol-version');
  if (version.kind === 'repeated' || (version.kind === 'single' && version.value !== claimed))
    return mismatch('MCP-Protocol-Version');
  if (claimed !== MODERN_VERSION)
    return {
      code: UNSUPPORTED_VERSION,
      message: 'Unsupported protocol version.',
      data: { supported: [MODERN_VERSION], requested: claimed },
    };
  if (version.kind === 'absent') return mismatch('MCP-Protocol-Version');
  const name = headerOf('mcp-method');
  if (name.kind !== 'single' || name.value !== method) return mismatch('Mcp-Method');
  return method === 'tools/call' && !namesTool(params['name'], headerOf) ? mismatch('Mcp-Name') : undefined;
}

/** A call without a name has nothing that a header could repeat; it fails later. */
function namesTool(name: Json | undefined, headerOf: HeaderOf): boolean {
  const header = headerOf('mcp-name');
  if (typeof name !== 'string') return header.kind === 'absent';
  return header.kind === 'single' && decodeMirrored(header.value) === name;
}

/**
 * The value of a header that repeats a part of the body (2026-07-28, "Value Encoding"): plain, or
 * base64 of UTF-8 between `=?base64?` and `?=`. Undefined for base64 that is not canonical or not
 * UTF-8.
 */
function decodeMirrored(value: string): string | undefined {
  const encoded = ENCODED.exec(value)?.[1];
  if (encoded === undefined) return value;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.toString('base64') !== encoded) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** The first header that differs from its argument ("Server Behavior for Custom Headers"). */
export function differingHeader(
  parameters: readonly MirroredParameter[],
  input: JsonObject,
  headerOf: HeaderOf,
): string | undefined {
  return parameters.find(({ header, path, type }) => {
    const value = valueAt(input, path);
    // Without an argument the header is not expected, and nothing here reads it.
    if (value === undefined || value === null || typeof value === 'object') return false;
    const reading = headerOf(header);
    const decoded = reading.kind === 'single' ? decodeMirrored(reading.value) : undefined;
    if (decoded === undefined) return true;
    const sameNumber =
      type === 'integer' && typeof value === 'number' && DECIMAL.test(decoded) && Number(decoded) === value;
    return !sameNumber && decoded !== String(value);
  })?.header;
}

function valueAt(input: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = input;
  for (const name of path) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return value;
}

/** The error for a header that does not repeat the body. */
export function mismatch(header: string): RpcError {
  return {
    code: HEADER_MISMATCH,
    message: `Header mismatch: ${header} must be there once and repeat what the body says.`,
    data: { header },
  };
}

/** Parameters that break the rules of their method. */
export function badParams(message: string): RpcError {
  return { code: INVALID_PARAMS, message: `Invalid params: ${message}` };
}

function invalid(message: string): RpcError {
  return { code: INVALID_REQUEST, message: `Invalid request: ${message}` };
}

function refused(id: RpcId | null, error: RpcError): McpReading {
  return { kind: 'refused', status: 400, id, error };
}

/** The parser has refused integers beyond the exact range of a double. */
function isId(id: Json | undefined): id is RpcId {
  return typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id));
}
