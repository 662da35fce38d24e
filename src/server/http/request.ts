/**
 * Reads requests: single headers and tokens, targets, the framing that two parsers could read
 * differently, and bodies.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIPv6 } from 'node:net';
import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { type Json, JsonError, parseStrictJson } from '../../json/json.ts';

/** Whether a `content-encoding` changes the bytes; `identity` does not (RFC 9110, 8.4). */
export function isEncoded(contentEncoding: string | readonly string[] | undefined): boolean {
  return contentEncoding !== undefined && String(contentEncoding).toLowerCase() !== 'identity';
}

const JSON_TYPE = /^(?:application\/json|[\w.-]+\/[\w.+-]+\+json)\s*(?:;|$)/i;

/** Whether a media type, with or without parameters, is `application/json` or a `+json` type. */
export function isJsonType(mediaType: string): boolean {
  return JSON_TYPE.test(mediaType);
}

/** A bearer token that is accepted, and its owner. */
interface KnownToken<Owner> {
  readonly token: string;
  readonly owner: Owner;
}

/**
 * Finds the owner of a token; undefined for none and for an unknown one. Tokens are compared as
 * digests, in constant time, with every known one.
 */
export function ownersOf<Owner>(known: readonly KnownToken<Owner>[]): (token: string | undefined) => Owner | undefined {
  const digests = known.map(({ token, owner }) => ({ expected: digest(token), owner }));
  return function ownerOf(token) {
    const presented = digest(token ?? '');
    let found: Owner | undefined;
    // No early exit: the time must not show which token matched.
    for (const { expected, owner } of digests) found = timingSafeEqual(presented, expected) ? owner : found;
    return token === undefined ? undefined : found;
  };
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** A header as it was sent. Node joins most repeated ones with a comma, which is not one value. */
export type HeaderReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'single'; readonly value: string }
  | { readonly kind: 'repeated' };

/** Reads one header by its lower-case name from the raw list. */
export function readHeader(req: IncomingMessage, name: string): HeaderReading {
  const joined = req.headers[name];
  if (joined === undefined) return { kind: 'absent' };
  let value: string | undefined;
  const raw = req.rawHeaders;
  for (let at = 0; at < raw.length; at += 2) {
    const given = raw[at];
    // The length alone rules most headers out.
    if (given?.length !== name.length || given.toLowerCase() !== name) continue;
    if (value !== undefined) return { kind: 'repeated' };
    value = raw[at + 1] ?? '';
  }
  return value === undefined ? { kind: 'absent' } : { kind: 'single', value };
}

/** The value of a header that came exactly once. */
export function singleHeader(req: IncomingMessage, name: string): string | undefined {
  const reading = readHeader(req, name);
  return reading.kind === 'single' ? reading.value : undefined;
}

const TAKES_TRAILERS = /(?:^|,)\s*trailers\s*(?:,|$)/i;

/** Whether a caller reads trailers behind a body (RFC 9110 10.1.4). */
export function takesTrailers({
  headers,
  httpVersionMinor,
}: Pick<IncomingMessage, 'headers' | 'httpVersionMinor'>): boolean {
  // HTTP/1.0 has no bodies in chunks.
  return headers.te !== undefined && httpVersionMinor > 0 && TAKES_TRAILERS.test(String(headers.te));
}

/** The origin before the path in a target of absolute form (RFC 9112, 3.2.2), and its host. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

/**
 * A request target without the origin that proxies get (RFC 9112, 3.2.2), beginning with a slash;
 * `*` as it is. Nothing is decoded, and no empty segment is removed.
 */
export function originForm(target: string): string {
  if (target.startsWith('/') || target === '*') return target;
  const rest = target.replace(ORIGIN, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** The host of a target in absolute form, which precedes the Host header; else undefined. */
export function targetHost(target: string): string | undefined {
  return ORIGIN.exec(target)?.[1];
}

/** The path of a request target as it was sent. */
export function rawPath(target: string): string {
  const path = originForm(target);
  const at = path.indexOf('?');
  return at === -1 ? path : path.slice(0, at);
}

/** The rest of a raw path behind the mount, empty or from its slash on; undefined if not below. */
export function belowMount(mountPath: string, path: string): string | undefined {
  if (!path.startsWith(mountPath)) return undefined;
  return path.length === mountPath.length || path[mountPath.length] === '/' ? path.slice(mountPath.length) : undefined;
}

/**
 * Path of a call over HTTP. A RegExp: the router takes 2 us of a call for it, and 10 us for a text
 * with a parameter.
 */
export const INVOKE_PATH = /^\/api\/resources\/(?<id>[^/]+)\/invoke$/;

const ENCODED_SLASH = /%2f/i;

/**
 * Refuses encoded slashes: the router decodes before it matches, and would take one as part of an
 * id. `except`: a mount whose adapter matches raw paths, and whose ids may have slashes.
 */
export function refuseEncodedSlash(except?: string): RequestHandler {
  return function refuseEncodedSlash(req, _res, next) {
    const matched = except !== undefined && belowMount(except, rawPath(req.url)) !== undefined;
    if (!matched && ENCODED_SLASH.test(req.path)) throw new GatewayError('NOT_FOUND');
    next();
  };
}

/** Answers 405 for a method that no earlier handler of the path serves. */
export function allowOnly(...methods: readonly string[]): RequestHandler {
  const allow = methods.join(', ');
  return function methodNotAllowed() {
    throw new GatewayError('METHOD_NOT_ALLOWED', { message: `This route serves ${allow}.`, headers: { allow } });
  };
}

/**
 * Enters a router only for these paths and those below them. A router in which nothing matches
 * passes a request on in a later turn of the event loop, so every call behind it would wait for a
 * turn, and would be counted as in flight only then.
 */
export function belowPath(paths: readonly string[], router: RequestHandler): RequestHandler {
  return function belowPath(req, res, next) {
    const { path } = req;
    if (paths.some((above) => path.startsWith(above) && (path.length === above.length || path[above.length] === '/')))
      router(req, res, next);
    else next();
  };
}

/**
 * Fields that may come only once: of two, each reader could take another one as valid. Headers of
 * the payment and of the adapters have rules of their own (contract 3 and 4), and X-Request-Id is
 * replaced.
 */
export const SINGLE_FIELDS: readonly string[] = [
  'authorization',
  'agent-authorization',
  'content-type',
  'host',
  'content-length',
  'last-event-id',
];
/** Each field has a bit, in the sets below. */
const SINGLE_BITS = SINGLE_FIELDS.map((field, index) => ({ field, bit: 1 << index }));
/** The fields and their bits by the length of the name. */
const SINGLE_BY_LENGTH: readonly (readonly { readonly field: string; readonly bit: number }[] | undefined)[] =
  Array.from({ length: Math.max(...SINGLE_FIELDS.map(({ length }) => length)) + 1 }, (_, length) => {
    const ofLength = SINGLE_BITS.filter(({ field }) => field.length === length);
    return ofLength.length === 0 ? undefined : ofLength;
  });

/** An adapter that refuses some repeated fields itself, in its protocol, at its mount and below. */
export interface FieldJudge {
  readonly mountPath: string;
  /** Never fields that say where a request goes or ends: two parsers could disagree there. */
  readonly judgedFields: readonly ('authorization' | 'content-type')[];
}

interface FramingFault {
  readonly reason: string;
  readonly message: string;
  /** The header at fault. */
  readonly field?: string;
}

/**
 * Refuses requests whose beginning, end or meaning two HTTP parsers could read differently, beyond
 * what Node's strict parser refuses by itself: security of the framing, RFC 9112. Their connection
 * ends with the answer. `Upgrade` is ignored, not refused: clients of Java offer h2c with every
 * request. `judge`: an adapter that checks its own fields.
 */
export function checkFraming(judge?: FieldJudge): RequestHandler {
  const left = bitsOf(judge?.judgedFields ?? []);
  return function checkFraming(req, res, next) {
    const judged = judge !== undefined && belowMount(judge.mountPath, rawPath(req.url)) !== undefined;
    const fault = framingFault(req, judged ? left : 0);
    if (fault === undefined) {
      next();
      return;
    }
    res.shouldKeepAlive = false;
    throw refusalOf(fault);
  };
}

function refusalOf({ reason, message, field }: FramingFault): GatewayError {
  return new GatewayError('INPUT_INVALID', {
    message,
    details: { reason, ...(field === undefined ? {} : { field }) },
  });
}

function bitsOf(fields: readonly string[]): number {
  return SINGLE_BITS.reduce((bits, { field, bit }) => (fields.includes(field) ? bits | bit : bits), 0);
}

/** `left`: the bits of fields that are left to an adapter. */
function framingFault(req: IncomingMessage, left: number): FramingFault | undefined {
  const { headers, method } = req;
  const fault = delimitingFault(req, left);
  if (fault !== undefined) return fault;
  if (headers.trailer !== undefined) return TRAILERS;
  if ((method === 'GET' || method === 'HEAD') && hasBody(headers))
    return { reason: 'unexpected_body', message: `A ${method} request has no body.` };
  return undefined;
}

/** The fault by which two parsers could read another version, host, or end of the message. */
function delimitingFault(req: IncomingMessage, left: number): FramingFault | undefined {
  const { httpVersion, headers, rawHeaders } = req;
  if (rawHeaders.length > 2 * MAX_HEADERS)
    return { reason: 'headers_too_large', message: 'The head of this request is too large.' };
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return { reason: 'http_version', message: 'Only versions 1.1 and 1.0 of HTTP are spoken here.' };
  if (headers.host === undefined && httpVersion === '1.1')
    return { reason: 'host_missing', message: 'A request needs a Host.' };
  const field = repeatedField(req.rawHeaders, left);
  if (field !== undefined)
    return { reason: 'repeated_header', message: `The header ${field} must come only once.`, field };
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0'))
    return { reason: 'transfer_encoding', message: 'The only transfer coding is chunked, in version 1.1 of HTTP.' };
  return undefined;
}

/** All fields but those that say where a request goes and ends: their meaning is the backend's. */
const LEFT_TO_BACKEND = bitsOf(SINGLE_FIELDS.filter((field) => field !== 'host' && field !== 'content-length'));

/**
 * The refusal of a request that passes to the backend: only its beginning, its end and its host
 * must be beyond doubt, and the backend judges its meaning. Undefined: no refusal.
 */
export function relayedFramingRefused(req: IncomingMessage): GatewayError | undefined {
  const fault = delimitingFault(req, LEFT_TO_BACKEND) ?? hostFault(req.headers.host);
  return fault && refusalOf(fault);
}

const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[([0-9a-f:.]+)\])(?::(\d{1,5}))?$/i;
/** The longest name in DNS with its port, characters. */
const MAX_HOST_LENGTH = 260;
const MAX_PORT = 65_535;

/** Refuses a Host that names no host: sites and caches keep links made from it. Empty passes. */
function hostFault(host = ''): FramingFault | undefined {
  if (host === '') return undefined;
  const [matched, address, port = '1'] = (host.length <= MAX_HOST_LENGTH && HOST.exec(host)) || [];
  const valid = matched !== undefined && (address === undefined || isIPv6(address)) && Number(port) <= MAX_PORT;
  return valid && Number(port) > 0 ? undefined : HOST_INVALID;
}

const HOST_INVALID: FramingFault = {
  reason: 'host_invalid',
  message: 'Host must be a name or an address, with an optional port from 1 to 65535.',
};

/**
 * Most fields of a head. The gateway counts them itself: Node 24 drops those beyond its own limit,
 * and a Content-Length among them would still delimit the body.
 */
const MAX_HEADERS = 100;

const TRAILERS: FramingFault = { reason: 'trailers', message: 'Trailers are not read.' };

/** Refuses trailers, announced or not: a proxy before the gateway may have read them as headers. */
function trailersRefused(req: IncomingMessage): GatewayError | undefined {
  return req.rawTrailers.length === 0 ? undefined : refusalOf(TRAILERS);
}

/** Whether a request says that bytes follow its head. */
export function hasBody(headers: IncomingMessage['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** From the raw list: Node keeps only the first of some repeated fields and joins the others. */
function repeatedField(raw: readonly string[], left: number): string | undefined {
  let seen = 0;
  for (let at = 0; at < raw.length; at += 2) {
    const given = raw[at] ?? '';
    // The length alone rules most headers out.
    const named = SINGLE_BY_LENGTH[given.length];
    if (named === undefined) continue;
    const name = given.toLowerCase();
    for (const { field, bit } of named) {
      if (field !== name || (left & bit) !== 0) continue;
      if ((seen & bit) !== 0) return field;
      seen |= bit;
    }
  }
  return undefined;
}

/** Largest request body, bytes on the wire (specification 8). */
export const MAX_BODY_BYTES = 262_144;

const CHARSET = /;\s*charset\s*=\s*"?([^\s";]*)/i;
/** The test by which Node leaves `100 Continue` to the server. */
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/** A body as it came, and the JSON in it. */
interface JsonBody {
  readonly bytes: Uint8Array;
  readonly value: Json;
  /** Nothing came: `bytes` and `value` are those of `{}`. */
  readonly absent: boolean;
}

/**
 * Reads a JSON body without a body parser: the type is checked before a byte is read, bytes are
 * counted as they arrive, the 413 goes out with the first byte too many, and the original bytes are
 * kept for the backend. An empty body is `{}`.
 * @throws GatewayError UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, INPUT_INVALID
 */
export async function readJsonBody(req: IncomingMessage, res: ServerResponse): Promise<JsonBody> {
  const bytes = await readJsonBytes(req, res);
  if (bytes.length === 0) return { bytes: Buffer.from('{}'), value: {}, absent: true };
  try {
    return { bytes, value: parseStrictJson(bytes), absent: false };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    throw new GatewayError('INPUT_INVALID', { message: thrown.message, details: { reason: thrown.reason } });
  }
}

/**
 * The bytes of a JSON body, not parsed: for adapters whose protocol has its own error for invalid
 * JSON.
 * @throws GatewayError UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, INPUT_INVALID
 */
export async function readJsonBytes(req: IncomingMessage, res: ServerResponse): Promise<Uint8Array> {
  return readBytes(req, res, !hasJsonType(req));
}

/** False when there is no content type at all, which is right for an empty body only. */
function hasJsonType(req: IncomingMessage): boolean {
  if (isEncoded(req.headers['content-encoding']))
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', { message: 'Send the body without content-encoding.' });
  const type = readHeader(req, 'content-type');
  if (type.kind === 'absent') return false;
  if (type.kind === 'single' && isJsonType(type.value) && isUtf8(type.value)) return true;
  throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', {
    message: 'The body must be application/json or a +json type, in UTF-8.',
  });
}

function tooLarge(): GatewayError {
  return new GatewayError('PAYLOAD_TOO_LARGE', { details: { maxBytes: MAX_BODY_BYTES } });
}

/**
 * The bytes of a body whose type is checked already. `mustBeEmpty`: it has no type.
 * @throws GatewayError PAYLOAD_TOO_LARGE, INPUT_INVALID, and UNSUPPORTED_MEDIA_TYPE where it must
 * be empty and is not
 */
export function readBytes(req: IncomingMessage, res: ServerResponse, mustBeEmpty: boolean): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const noType = (): GatewayError =>
      new GatewayError('UNSUPPORTED_MEDIA_TYPE', { message: 'Send content-type: application/json with a body.' });
    const chunks: Buffer[] = [];
    let size = 0;
    const refuse = (error: GatewayError): void => {
      req.off('data', onData);
      req.pause();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) refuse(tooLarge());
      else if (mustBeEmpty) refuse(noType());
      else chunks.push(chunk);
    };
    const declared = Number(req.headers['content-length'] ?? 0);
    if (declared > MAX_BODY_BYTES) return refuse(tooLarge());
    if (mustBeEmpty && declared > 0) return refuse(noType());
    const onEnd = (): void => {
      const trailers = trailersRefused(req);
      if (trailers === undefined)
        resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
      else {
        res.shouldKeepAlive = false;
        reject(trailers);
      }
    };
    if (isThere(req)) {
      for (let chunk: Buffer | null = req.read(); chunk !== null; chunk = req.read()) onData(chunk);
      return onEnd();
    }
    req.on('data', onData);
    req.once('end', onEnd);
    req.once('error', (cause) =>
      // A GatewayError is the gateway's own, as after a standstill, and not the caller's fault.
      reject(
        cause instanceof GatewayError
          ? cause
          : new GatewayError('INPUT_INVALID', { details: { reason: 'incomplete_body' }, cause }),
      ),
    );
    // `100 Continue` goes out last: a caller that waits for it sends no body that would be refused.
    if (CONTINUE.test(req.headers.expect ?? '')) res.writeContinue();
  });
}

/**
 * Whether a whole body has come and nothing has read of it, as for calls that waited for their
 * turn. Such a body is read without events, each of which costs as much as a check.
 */
function isThere(req: IncomingMessage): boolean {
  return req.complete && !req.destroyed && req.readableFlowing === null;
}

function isUtf8(contentType: string): boolean {
  const charset = CHARSET.exec(contentType)?.[1]?.toLowerCase();
  return charset === undefined || charset === 'utf-8' || charset === 'utf8';
}

/** The key of a mark on the request itself: a WeakMap costs more in garbage collections. */
const RELAYED = Symbol('its body is relayed');

interface Noted extends IncomingMessage {
  [RELAYED]?: boolean;
}

/** From now on the body of this request is read beside its answer, at the pace of its receiver. */
export function noteBodyRelayed(req: Noted): void {
  req[RELAYED] = true;
}

/** Notes that the relay ended before the body: the answer now is the gateway's own. */
export function noteRelayEnded(req: Noted): void {
  req[RELAYED] = false;
}

export function isBodyRelayed(req: Noted): boolean {
  return req[RELAYED] === true;
}
