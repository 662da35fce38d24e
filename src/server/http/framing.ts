/** Refuses requests that two HTTP parsers could read differently, before anything else is read. */

import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { belowMount, rawPath } from './target.ts';

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
/** The same by the length of the name. */
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
 * ends with the answer. `Upgrade` is ignored, not refused. `judge`: an adapter that checks its own
 * fields.
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

/** What two parsers could read as another version, host, or end of the message. */
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
 * The same for a request that passes to the backend: what it means is the backend's to judge, and
 * only its beginning, its end and its host must be beyond doubt. Undefined: they are.
 */
export function relayedFramingRefused(req: IncomingMessage): GatewayError | undefined {
  const fault = delimitingFault(req, LEFT_TO_BACKEND) ?? hostFault(req.headers.host);
  return fault && refusalOf(fault);
}

const HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[([0-9a-f:.]+)\])(?::(\d{1,5}))?$/i;
/** Of a name in DNS, and its port. */
const MAX_HOST_LENGTH = 260;
const MAX_PORT = 65_535;

/** A Host that names no host: sites write links from it, and caches keep them. It may be empty. */
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
export function trailersRefused(req: IncomingMessage): GatewayError | undefined {
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
