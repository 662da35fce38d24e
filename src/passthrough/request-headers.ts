/** Cleans the headers of a passed request before the proxy copies them to the backend. */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { compileFields, namedInConnection } from './field-names.ts';

/** What the gateway itself tells the backend of a request. */
export interface ForwardedFacts {
  /** The caller as trusted proxies saw it. */
  readonly client: string;
  readonly proto: 'http' | 'https';
  readonly requestId: string;
  /** What the backend gets as Host; undefined: the caller's. */
  readonly host: string | undefined;
}

/**
 * The gateway alone says who called and what was paid. Method overrides and rewritten paths would
 * make another request of the one whose path was judged.
 */
const passes = compileFields({
  names: [
    ...['forwarded', 'proxy', 'x-forwarded', 'x-real-ip', 'x-request-id'],
    ...['x-http-method', 'x-http-method-override', 'x-method-override'],
  ],
  prefixes: [
    ...['agent-commerce-', 'agent-authorization', 'payment-', 'x-payment'],
    ...['x-forwarded-', 'x-original-', 'x-rewrite-'],
  ],
});

/** Whether a caller's field goes on to the backend, by its lower-case name. */
export const passesToBackend = passes;

/** A host with an optional port, as it may be repeated in X-Forwarded-Host. */
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/i;
const DEFAULT_PORTS = { http: '80', https: '443' } as const;
/** What makes a request an upgrade, in its own fields. */
const UPGRADE = { connection: 'Upgrade', upgrade: 'websocket' } as const;

/**
 * Replaces the headers of a request by those that the backend may see. They are replaced in the
 * request itself, because the proxy copies them from there in every case. `upgrade`: it asks for a
 * WebSocket, which the backend must see.
 */
export function cleanRequestHeaders(req: IncomingMessage, facts: ForwardedFacts, upgrade = false): void {
  const { headers } = req;
  const named = namedInConnection(headers.connection);
  const cleaned: IncomingHttpHeaders = {};
  for (const name in headers) if (passes(name) && !named.has(name)) cleaned[name] = headers[name];
  // Again after what `Connection` named: a caller must not remove what the gateway says.
  cleaned['x-request-id'] = facts.requestId;
  cleaned['x-forwarded-for'] = facts.client;
  cleaned['x-forwarded-proto'] = facts.proto;
  const port = HOST.exec(headers.host ?? '');
  if (port !== null) {
    cleaned['x-forwarded-host'] = port[0];
    cleaned['x-forwarded-port'] = port[1] ?? DEFAULT_PORTS[facts.proto];
  }
  if (facts.host !== undefined) cleaned.host = facts.host;
  if (upgrade) Object.assign(cleaned, UPGRADE);
  req.headers = cleaned;
}
