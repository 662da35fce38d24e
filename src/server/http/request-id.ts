/** Gives requests their ids: the first middleware of both listeners. */

import type { IncomingMessage } from 'node:http';
import type { RequestHandler, Response } from 'express';
import { newCallId, newId } from '../../events/call-id.ts';
import { readHeader } from './headers.ts';
import { belowMount, rawPath } from './target.ts';

/** What a caller's X-Request-Id may be (specification 8). */
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,64}$/;

/** How a new id begins, by raw path (contract 3, "requestId minted by other channels"). */
export interface IdPrefixes {
  get(path: string): string | undefined;
}

/** The adapter that answers everything at and below its mount; the others have one path each. */
export const ADAPTER_WITH_ROUTES = 'acp';

/** The channel's name on the mounts of its adapter, `req` everywhere else. */
export function idPrefixes(
  protocols: Readonly<Record<string, { readonly enabled: boolean; readonly mountPath?: string }>>,
): IdPrefixes {
  const prefixes = new Map<string, string>();
  for (const [channel, { enabled, mountPath }] of Object.entries(protocols))
    if (enabled && mountPath !== undefined) prefixes.set(mountPath, channel).set(`${mountPath}/`, channel);
  const { [ADAPTER_WITH_ROUTES]: adapter } = protocols;
  const above = adapter?.enabled === true ? adapter.mountPath : undefined;
  if (above === undefined) return prefixes;
  return {
    get: (path) => (belowMount(above, path) === undefined ? prefixes.get(path) : ADAPTER_WITH_ROUTES),
  };
}

/** The caller's id if it came once and is legal, else a new one: no other text is ever echoed. */
export function requestIdFor(req: IncomingMessage, prefix: string): string {
  const given = readHeader(req, 'x-request-id');
  return given.kind === 'single' && REQUEST_ID.test(given.value) ? given.value : newRequestId(prefix);
}

/**
 * A UUIDv7: stores keep an index of request ids, and ids that grow with time touch its last page
 * alone.
 */
function newRequestId(prefix: string): string {
  return newId(`${prefix}_`);
}

/** Gives every request its ids before anything can fail; every answer names its request id. */
export function identify(prefixes: IdPrefixes = new Map<string, string>()): RequestHandler {
  return function identify(req, res, next) {
    const requestId = requestIdFor(req, prefixes.get(rawPath(req.url)) ?? 'req');
    // In place of the object of Express, which has no prototype: V8 reads it as a dictionary.
    res.locals = { requestId, callId: newCallId() } satisfies CallIds;
    res.setHeader('x-request-id', requestId);
    next();
  };
}

/** The id that the caller chose or was given, and the gateway's own. */
export interface CallIds {
  readonly requestId: string;
  readonly callId: string;
}

/** Both ids of the request that this response answers. */
export function idsOf(res: Response): CallIds {
  return { requestId: requestIdOf(res), callId: callIdOf(res) };
}

/** The id of the request that this response answers. */
export function requestIdOf(res: Response): string {
  return given(res).requestId ?? newRequestId('req');
}

/** The gateway's own id of the call that this response answers; callers never see it. */
export function callIdOf(res: Response): string {
  return given(res).callId ?? newCallId();
}

function given(res: Response): Partial<CallIds> {
  return (res.locals ?? {}) as Partial<CallIds>;
}
