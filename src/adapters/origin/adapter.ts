/** The adapter of sales in place: a request at the backend's own address becomes a call. */

import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { type InPlaceRoute, inPlaceOf } from '../../passthrough/route.ts';
import { type Challenge, type HeadRoom, inPlaceUrl } from '../../payments/x402/wire/challenge.ts';
import { type InPlaceCall, type ReceivedCall, type ResponseWriter, receiveCall } from '../../pipeline/call.ts';
import { carriesBody } from '../../resources/backend-request.ts';
import type { Catalogue } from '../../resources/catalogue.ts';
import type { Resource } from '../../resources/resource.ts';
import type { AddressReader } from '../../resources/reverse-template.ts';
import type { OriginHeader } from '../../resources/settings.ts';
import { callIdOf, requestIdOf } from '../../server/http/access-record.ts';
import { hasBody, readJsonBody, singleHeader } from '../../server/http/request.ts';
import { clientGone } from '../../server/http/respond.ts';
import { carriedKey, carriedMandate, carriedProof } from '../extract-credentials.ts';
import type { PaymentPages } from '../http/payment-page.ts';
import { httpResponseWriter } from '../http/response-writer.ts';

interface OriginParts {
  readonly catalogue: Pick<Catalogue, 'byId'>;
  readonly pages: PaymentPages;
  readonly publicBaseUrl: string;
  /** Headers of the caller that the backend gets. */
  readonly originHeaders: readonly OriginHeader[];
  readonly room?: HeadRoom;
}

/** Preconditions that may be ignored for an answer that is sent whole (RFC 9110, 13.2.1). */
export const IGNORABLE_CONDITIONS = ['if-none-match', 'if-modified-since', 'range', 'if-range'] as const;
/** Preconditions of any effect; only the backend knows whether they hold. */
export const STRICT_CONDITIONS = ['if-match', 'if-unmodified-since'] as const;
/** Only a GET has parts. */
const RANGES: ReadonlySet<string> = new Set(['range', 'if-range']);

/** Replaces the credentials of a HEAD, which asks for the head of a GET and buys nothing. */
const NOTHING_CARRIED = { proof: { kind: 'none' }, mandate: { kind: 'none' }, idempotencyKey: undefined } as const;

/** Receives the calls that `takeRoute` has found at the address of a sold resource. */
export function originAdapter(parts: OriginParts): RequestHandler {
  return async function receiveInPlace(req, res, next) {
    const startedAt = performance.now();
    const { route, resource, address } = soldHere(res, parts.catalogue);
    if (route.asks === 'options') {
      res.writeHead(204, { allow: route.allow });
      res.end();
      return;
    }
    const left = clientGone(res);
    const read = await readInput(req, res, { route, resource, address });
    const requestId = requestIdOf(res);
    const inPlace = readInPlace(req, { route, resource }, parts);
    receiveCall(res, {
      stage: 'received',
      requestId,
      callId: callIdOf(res),
      channel: 'origin',
      resourceId: resource.id,
      ...read,
      ...(route.asks === 'head' ? NOTHING_CARRIED : carried(req)),
      inPlace,
      trace: { traceparent: singleHeader(req, 'traceparent'), tracestate: singleHeader(req, 'tracestate') },
      responseWriter: originResponseWriter(res, requestId, {
        page: (challenge) => parts.pages(resource.id, challenge, inPlace.url ?? parts.publicBaseUrl + route.publicPath),
        variesBy: parts.originHeaders,
        room: parts.room,
      }),
      startedAt,
      left,
    });
    next();
  };
}

/** The sold resource at the address of a request. */
interface SoldHere {
  readonly route: InPlaceRoute;
  readonly resource: Resource;
  readonly address: AddressReader;
}

/** @throws Error for a request that no route brought here: a bug */
function soldHere(res: Response, catalogue: Pick<Catalogue, 'byId'>): SoldHere {
  const route = inPlaceOf(res);
  const resource = route && catalogue.byId.get(route.resourceId);
  if (route === undefined || resource?.address === undefined) throw new Error('nothing is sold at this address');
  return { route, resource, address: resource.address };
}

function carried(req: IncomingMessage): Pick<ReceivedCall, 'proof' | 'mandate' | 'idempotencyKey'> {
  return { proof: carriedProof(req), mandate: carriedMandate(req), idempotencyKey: carriedKey(req) };
}

/**
 * Reads path, query and body as one input. An ambiguous one is refused before there is a price.
 * @throws GatewayError INPUT_INVALID, and those of the body
 */
async function readInput(
  req: Request,
  res: Response,
  { route, resource, address }: SoldHere,
): Promise<Pick<ReceivedCall, 'input' | 'rawInput' | 'withoutInput'>> {
  const body = carriesBody(resource.backend.method) ? await readBody(req, res) : withoutBody(req);
  const reading = address.read({ path: route.path, query: route.query, body: body?.value });
  if (!reading.ok)
    throw new GatewayError('INPUT_INVALID', {
      message: 'Path, query or body of this request is not an input of the resource.',
      details: reading.problem === undefined ? { reason: 'path_spelling' } : { errors: [reading.problem] },
    });
  const { input } = reading;
  // The bytes are the input only when no part of it came from elsewhere.
  const whole = body !== undefined && Object.keys(input).length === Object.keys(body.value).length;
  const nothing = (body === undefined || body.absent) && Object.keys(input).length === 0;
  return { input, rawInput: whole ? body.bytes : undefined, withoutInput: nothing };
}

async function readBody(
  req: Request,
  res: Response,
): Promise<{ readonly bytes: Uint8Array; readonly value: JsonObject; readonly absent: boolean }> {
  const { value, ...body } = await readJsonBody(req, res);
  if (!isObject(value)) throw new GatewayError('INPUT_INVALID', { message: 'The body must be a JSON object.' });
  return { ...body, value };
}

/** @throws GatewayError INPUT_INVALID: servers disagree about a body that has no meaning */
function withoutBody({ headers, method }: Request): undefined {
  if (hasBody(headers))
    throw new GatewayError('INPUT_INVALID', {
      message: `A ${method} request has no body here.`,
      details: { reason: 'unexpected_body' },
    });
}

/** @throws GatewayError INPUT_INVALID for a precondition that a purchase cannot keep */
function readInPlace(
  req: Request,
  { route, resource }: Pick<SoldHere, 'route' | 'resource'>,
  { publicBaseUrl, originHeaders }: OriginParts,
): InPlaceCall {
  const paid = resource.pricing.type !== 'free';
  const strict = STRICT_CONDITIONS.find((name) => paid && req.headers[name] !== undefined);
  if (strict !== undefined)
    throw new GatewayError('INPUT_INVALID', {
      message: `${strict} cannot be promised for an answer that is paid before it is made. Leave it out.`,
      details: { reason: 'precondition', field: strict },
    });
  const conditions = [...STRICT_CONDITIONS, ...IGNORABLE_CONDITIONS].filter(
    (name) => !(RANGES.has(name) && route.asks === 'head'),
  );
  return {
    url: inPlaceUrl(publicBaseUrl, route.publicPath),
    callerHeaders: headersOf(req, originHeaders),
    conditions: paid ? {} : headersOf(req, conditions),
  };
}

/** The named headers that came and are not empty; Node joins those that came twice. */
function headersOf({ headers }: Request, names: readonly string[]): Readonly<Record<string, string>> {
  const found = names.flatMap((name) => {
    const value = headers[name];
    return typeof value === 'string' && value !== '' ? [[name, value] as const] : [];
  });
  return Object.fromEntries(found);
}

/** The facts that an answer in place depends on, beside the call. */
interface InPlaceAnswer {
  /** Makes the page of a 402. */
  readonly page: (challenge: Challenge) => string;
  /** Request headers that a free answer may depend on: caches must tell its copies apart. */
  readonly variesBy: readonly string[];
  readonly room?: HeadRoom | undefined;
}

function originResponseWriter(
  res: Response,
  requestId: string,
  { page, variesBy, room }: InPlaceAnswer,
): ResponseWriter {
  const writer = httpResponseWriter(res, requestId, { ranges: true, page, ...(room === undefined ? {} : { room }) });
  return {
    ...writer,
    relay(answer, options) {
      if (!res.headersSent) {
        if (options.payment !== undefined) res.setHeader('accept-ranges', 'none');
        else for (const name of variesBy) res.vary(name);
      }
      return writer.relay(answer, options);
    },
  };
}
