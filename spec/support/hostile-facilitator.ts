/** A facilitator whose answers a test scripts: right, wrong, broken or none. */

import type { ServerResponse } from 'node:http';
import { resetConnection, serveHttp } from './http-server.ts';

/** One request to the facilitator. */
export interface FacilitatorCall {
  readonly path: '/verify' | '/settle' | '/supported';
  /** The parsed body; undefined for /supported. */
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** An answer that a facilitator should never give, or that a network makes of it. */
export type ScriptedAnswer =
  /** `behind`: bytes that nothing asked for, after the answer on the same connection. */
  | { readonly kind: 'json'; readonly status?: number; readonly body: unknown; readonly behind?: string }
  | {
      readonly kind: 'text';
      readonly status?: number;
      readonly type: string;
      readonly body: string | Uint8Array;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'redirect'; readonly status?: number; readonly location: string; readonly body?: unknown }
  /** Bytes instead of an HTTP answer; then the connection ends. */
  | { readonly kind: 'raw'; readonly bytes: string }
  /** A head, the beginning of a verdict, and then one space after another without end. */
  | { readonly kind: 'drip' }
  /** Reads the request and never answers. */
  | { readonly kind: 'hang' }
  /** Breaks the connection after the request was read. */
  | { readonly kind: 'reset' };

/** Makes the answer of one call; it may ask a real facilitator first. */
export type Script = (call: FacilitatorCall) => ScriptedAnswer | Promise<ScriptedAnswer>;

/** A facilitator that answers as its scripts say, and records every call. */
export interface HostileFacilitator {
  readonly url: string;
  readonly calls: readonly FacilitatorCall[];
  /** Changes the answers from now on; without a script everything is approved. */
  script(scripts: { readonly verify?: Script; readonly settle?: Script; readonly supported?: Script }): void;
  stop(): Promise<void>;
}

/** Between two bytes of a drip, milliseconds. */
const DRIP_PAUSE_MS = 20;

/** A well-formed hash of a transaction that does not exist. */
export const INVENTED_TRANSACTION = `0x${'ab'.repeat(32)}`;

/** Starts a facilitator that approves everything, moves nothing and records every call. */
export async function startHostileFacilitator(network: string): Promise<HostileFacilitator> {
  const calls: FacilitatorCall[] = [];
  const approve = approvals(network);
  let scripts: { readonly verify?: Script; readonly settle?: Script; readonly supported?: Script } = {};
  const server = await serveHttp(async ({ request, response, body }) => {
    // Below any path of its own.
    const path = `/${request.url?.split('/').pop()}`;
    if (path !== '/verify' && path !== '/settle' && path !== '/supported') return void response.writeHead(404).end();
    const text = body.toString();
    const call: FacilitatorCall = {
      path,
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
      headers: request.headers,
    };
    calls.push(call);
    const name = path.slice(1) as keyof typeof scripts;
    give(response, await (scripts[name] ?? approve[name])(call));
  });
  return {
    ...server,
    calls,
    script: (next) => {
      scripts = next;
    },
  };
}

/**
 * Asks the facilitator at `url` and answers as it does: the first half of "it settled, then the
 * connection broke".
 */
export function relayTo(url: string): Script {
  return async ({ path, body }) => {
    const asked = path === '/supported' ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${url}${path}`, { ...asked, headers: { 'content-type': 'application/json' } });
    return { kind: 'json', status: response.status, body: await response.json() };
  };
}

function approvals(network: string): Record<'verify' | 'settle' | 'supported', Script> {
  const kinds = [{ x402Version: 2, scheme: 'exact', network }];
  return {
    verify: (call) => ({ kind: 'json', body: { isValid: true, payer: claimedPayer(call.body) } }),
    settle: (call) => ({
      kind: 'json',
      body: { success: true, transaction: INVENTED_TRANSACTION, network, payer: claimedPayer(call.body) },
    }),
    supported: () => ({ kind: 'json', body: { kinds, extensions: [], signers: {} } }),
  };
}

/** The `from` of the authorization, as the buyer wrote it. */
function claimedPayer(body: unknown): string | undefined {
  const payment = body as { paymentPayload?: { payload?: { authorization?: { from?: string } } } } | undefined;
  return payment?.paymentPayload?.payload?.authorization?.from;
}

function give(response: ServerResponse, answer: ScriptedAnswer): void {
  switch (answer.kind) {
    case 'json':
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
      if (answer.behind !== undefined) response.socket?.write(answer.behind);
      return;
    case 'text':
      response.writeHead(answer.status ?? 200, { 'content-type': answer.type, ...answer.headers }).end(answer.body);
      return;
    case 'redirect':
      response
        .writeHead(answer.status ?? 302, { location: answer.location, 'content-type': 'application/json' })
        .end(JSON.stringify(answer.body ?? {}));
      return;
    case 'raw':
      response.socket?.end(answer.bytes);
      return;
    case 'drip': {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"isValid":true,"success":true');
      const drops = setInterval(() => response.write(' '), DRIP_PAUSE_MS);
      response.once('close', () => clearInterval(drops));
      return;
    }
    case 'reset':
      resetConnection(response);
      return;
    case 'hang':
      return;
  }
}
