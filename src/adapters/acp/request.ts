/**
 * Reads what a checkout call brings: its route, the headers that decide whether it is served (acp
 * 2.1), and the body, in its bytes, as JSON, and held to the schema of its operation.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  ACP_VERSION,
  type KeyedOperation,
  OPERATION_RULES,
  OPERATIONS,
  type Operation,
  SESSION_PLACE,
} from '../../checkouts/operations.ts';
import { type Json, JsonError, parseStrictJson } from '../../json/json.ts';
import { isEncoded, readBytes, readHeader } from '../../server/http/request.ts';
import { AcpError } from './error.ts';
import { type Build, type DocumentName, type Validator, validatorOf } from './validation/validator.ts';

/** The operation, and the decoded id of its session; undefined for create. */
export interface Route {
  readonly operation: Operation;
  readonly sessionId: string | undefined;
}

/** Longest session id once decoded, characters (code points). */
const MAX_SESSION_ID = 256;
/** A path segment (RFC 3986, 3.3). */
const SEGMENT = /^(?:[\w.~!$&'()*+,;=:@-]|%[0-9a-f]{2})+$/i;
const CONTROL = /\p{Cc}/u;

/** The operations of one path, by their methods. */
interface Path {
  readonly segments: readonly string[];
  readonly operations: ReadonlyMap<string, Operation>;
}

const PATHS: readonly Path[] = Object.entries(
  Object.groupBy(OPERATIONS, (operation) => OPERATION_RULES[operation].path),
).map(([path, operations = []]) => ({
  segments: path.split('/'),
  operations: new Map(operations.map((operation) => [OPERATION_RULES[operation].method, operation])),
}));

/**
 * Matches the raw path below the mount: decoding before matching would give one session several
 * paths, which the backend may read differently (acp 13.2).
 * @throws AcpError not_found, method_not_allowed
 */
export function routeOf(method: string | undefined, path: string): Route {
  const segments = path.split('/');
  const found = PATHS.find((pattern) => fits(pattern.segments, segments));
  if (found === undefined) throw new AcpError('not_found');
  const at = found.segments.indexOf(SESSION_PLACE);
  const sessionId = at === -1 ? undefined : sessionIdOf(segments[at] ?? '');
  if (at !== -1 && sessionId === undefined) throw new AcpError('not_found');
  const operation = found.operations.get(method ?? '');
  if (operation !== undefined) return { operation, sessionId };
  const allow = [...found.operations.keys()].join(', ');
  throw new AcpError('method_not_allowed', { message: `This route serves ${allow}.`, headers: { allow } });
}

const WORDS: ReadonlySet<string> = new Set(
  PATHS.flatMap(({ segments }) => segments.filter((word) => word !== SESSION_PLACE)),
);

/** A path below the mount for the log, without ids and other text of the caller. */
export function withoutIds(path: string): string {
  return path
    .split('/')
    .map((segment) => (WORDS.has(segment) ? segment : '*'))
    .join('/');
}

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  if (pattern.length !== segments.length) return false;
  return pattern.every((expected, at) => expected === SESSION_PLACE || expected === segments[at]);
}

/**
 * Backends choose ids: `gid://shop/Checkout/1` is one, sent as `gid%3A%2F%2Fshop%2FCheckout%2F1`.
 */
function sessionIdOf(segment: string): string | undefined {
  if (!SEGMENT.test(segment)) return undefined;
  const id = decoded(segment);
  if (id === undefined || [...id].length > MAX_SESSION_ID || CONTROL.test(id)) return undefined;
  return hasSteps(id) ? undefined : id;
}

/** Undefined: the bytes are not UTF-8. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** Whether a backend that decodes before it resolves paths would be led to another path. */
function hasSteps(id: string): boolean {
  const pieces = id.replace(SCHEME, '').split('/');
  return pieces.some((piece) => piece === '' || piece === '.' || piece === '..');
}

/**
 * Headers whose repetition this adapter refuses itself, with 401 and 415: the shared check
 * (`checkFraming`) leaves them to it.
 */
export const JUDGED_FIELDS = ['authorization', 'content-type'] as const;

/** A key between optional white space of HTTP: spaces and tabs, no other characters. */
const KEY = /^[ \t]*([!-~](?:[ -~]{0,253}[!-~])?)[ \t]*$/;
const BLANK = /^[ \t]*$/;
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
/** RFC 9110, 5.6.6: a semicolon may have no parameter behind it. */
const PARAMETER = `;[ \\t]*(?:(${TOKEN})=(${TOKEN}|"(?:[^"\\\\]|\\\\.)*")[ \\t]*)?`;
const JSON_TYPE = new RegExp(`^application/json[ \\t]*((?:${PARAMETER})*)$`, 'i');
const PARAMETERS = new RegExp(PARAMETER, 'gi');
const UTF8 = /^"?utf-8"?$/i;
/** Longest echo of a request id, characters. */
const MAX_ECHO = 128;
const PRINTABLE = /^[ -~]+$/;

/** The schema of each body. */
const SCHEMAS: Readonly<Record<KeyedOperation, DocumentName>> = {
  createCheckoutSession: 'CheckoutSessionCreateRequest',
  updateCheckoutSession: 'CheckoutSessionUpdateRequest',
  completeCheckoutSession: 'CheckoutSessionCompleteRequest',
  cancelCheckoutSession: 'CancelSessionRequest',
};

/** @throws AcpError missing_api_version, unsupported_api_version */
export function checkVersion(req: IncomingMessage): void {
  const version = readHeader(req, 'api-version');
  if (version.kind === 'single' && version.value === ACP_VERSION) return;
  const missing = version.kind === 'absent' || (version.kind === 'single' && version.value === '');
  throw new AcpError(missing ? 'missing_api_version' : 'unsupported_api_version', {
    supportedVersions: [ACP_VERSION],
  });
}

/**
 * The caller's key for an operation that must happen only once.
 * @throws AcpError idempotency_key_required, idempotency_key_invalid
 */
export function idempotencyKeyOf(req: IncomingMessage): string {
  const key = legibleKeyOf(req);
  if (key !== undefined) return key;
  const given = req.headers['idempotency-key'];
  const nothing = given === undefined || (typeof given === 'string' && BLANK.test(given));
  throw new AcpError(nothing ? 'idempotency_key_required' : 'idempotency_key_invalid');
}

/** The `Idempotency-Key` of a request; undefined when there is no valid one. */
export function legibleKeyOf(req: IncomingMessage): string | undefined {
  const header = readHeader(req, 'idempotency-key');
  if (header.kind !== 'single') return undefined;
  const [, key] = KEY.exec(header.value) ?? [];
  return key;
}

/**
 * The type and the coding of a body, before any of it is read. A body without a type must be empty.
 * @returns the content type; undefined when there is none
 * @throws AcpError unsupported_media_type
 */
export function checkMediaType(req: IncomingMessage): string | undefined {
  const type = readHeader(req, 'content-type');
  const declared = Number(req.headers['content-length'] ?? 0);
  const served = type.kind === 'absent' ? declared === 0 : type.kind === 'single' && isJsonInUtf8(type.value);
  if (!served || isEncoded(req.headers['content-encoding'])) throw new AcpError('unsupported_media_type');
  return type.kind === 'single' ? type.value : undefined;
}

function isJsonInUtf8(mediaType: string): boolean {
  const parameters = JSON_TYPE.exec(mediaType)?.[1];
  if (parameters === undefined) return false;
  return [...parameters.matchAll(PARAMETERS)].every(
    ([, name = '', value = '']) => name.toLowerCase() !== 'charset' || UTF8.test(value),
  );
}

/**
 * The caller's own id of the request, for the echo and the backend (acp 2.1); the gateway names
 * nothing by it. Undefined, and no error, when there is none that can be echoed.
 */
export function callerRequestIdOf(req: IncomingMessage): string | undefined {
  const given = readHeader(req, 'request-id');
  if (given.kind !== 'single' || !PRINTABLE.test(given.value)) return undefined;
  return given.value.slice(0, MAX_ECHO).trimEnd();
}

/** A body as it came, and the JSON in it. */
interface CheckoutBody {
  /** Undefined where there is none: reading, and a bare cancel. */
  readonly bytes: Uint8Array | undefined;
  readonly value: Json;
}

const NOTHING: CheckoutBody = { bytes: undefined, value: {} };

/**
 * Reads the body of an operation. The backend gets its bytes unchanged (acp 13.2); that is safe
 * because `parseStrictJson` refuses bytes that two parsers could read differently. `contentType`:
 * the result of `checkMediaType`.
 * @throws AcpError invalid_json; GatewayError of `readBytes`
 */
export async function readBody(
  { operation, contentType }: { readonly operation: Operation; readonly contentType: string | undefined },
  req: IncomingMessage,
  res: ServerResponse,
): Promise<CheckoutBody> {
  if (operation === 'getCheckoutSession') return NOTHING;
  const bytes = await readBytes(req, res, contentType === undefined);
  if (bytes.length === 0 && operation === 'cancelCheckoutSession') return NOTHING;
  if (bytes.length === 0)
    throw new AcpError('invalid_json', { message: 'The body is empty; it must be a JSON object.' });
  try {
    return { bytes, value: parseStrictJson(bytes) };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    throw new AcpError('invalid_json', { message: thrown.message });
  }
}

/**
 * Holds bodies to the schema of their operation; the result throws AcpError invalid_request_body,
 * with the path of the first fault. The schemas are compiled here, not during the first call.
 */
export function bodyChecks(build: Build): (operation: Operation, body: Json) => void {
  const validators = new Map<string, Validator>(
    Object.entries(SCHEMAS).map(([operation, name]) => [operation, validatorOf(build, name)]),
  );
  return function checkBody(operation, body) {
    const fault = validators.get(operation)?.(body);
    if (fault === undefined) return;
    const { param, message } = fault;
    throw new AcpError('invalid_request_body', {
      param,
      message: `The body does not match the schema of this operation: ${param} ${message}.`,
    });
  };
}
