/** The sample checkout backend: the five operations of ACP in memory, with faults on demand. */

import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { OPERATION_RULES, OPERATIONS, type Operation, SESSION_PLACE } from '../../../src/checkouts/operations.ts';
import { isObject, type JsonObject } from '../../../src/json/json.ts';
import { type HttpExchange, serveHttp } from '../http-server.ts';
import { openCheckouts } from './checkouts.ts';
import { behave, type Fault, sendDocument } from './faults.ts';
import type { Session } from './session.ts';

/** A call as it reached the backend. */
export interface BackendCall {
  readonly operation: Operation;
  /** Decoded; undefined for create. */
  readonly sessionId: string | undefined;
  /** Request target as sent. */
  readonly url: string;
  /** Name, value, name, value, as sent. */
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** Which calls a fault is for; default: all of them. */
export interface Aim {
  readonly operation?: Operation;
  readonly sessionId?: string;
  /** Text in the body: the only difference of two creates. */
  readonly text?: string;
}

/** A backend with real checkouts in memory that counts calls and misbehaves on demand. */
export interface CheckoutBackend {
  readonly url: string;
  /** In order of arrival; the newest 10,000. */
  readonly calls: readonly BackendCall[];
  /** POSTs for a session, whatever was answered. */
  posts(sessionId: string, operation?: Operation): number;
  /** Orders made of a session: never more than one, if the gateway is right. */
  orders(sessionId: string): number;
  /** Orders of all sessions. */
  allOrders(): number;
  session(sessionId: string): Session | undefined;
  /** The next `times` calls that match the aim get the fault; faults apply in their order. */
  misbehave(fault: Fault, aim?: Aim, times?: number): void;
  /** Resolves with the next such call, once its body has arrived and before the backend acts. */
  arrived(aim?: Aim): Promise<BackendCall>;
  /** Forgets calls and faults, not the sessions. */
  forget(): void;
  /** Ends also the connections whose answers are still to come. */
  stop(): Promise<void>;
}

/** How a backend behaves. */
export interface CheckoutBackendOptions {
  /** Default: a free one. */
  readonly port?: number;
  /** Whether it honours the idempotency key; default true. If not, each complete makes an order. */
  readonly dedupe?: boolean;
  /** Sees every request first. True: it answered. */
  readonly before?: (exchange: HttpExchange) => boolean;
}

const MAX_RECORDED = 10_000;
const ROUTES = OPERATIONS.map((operation) => {
  const { method, path } = OPERATION_RULES[operation];
  return { operation, method, pattern: new RegExp(`^${path.replace(SESSION_PLACE, '([^/]+)')}$`) };
});

/** Starts it on 127.0.0.1. */
export async function startCheckoutBackend(options: CheckoutBackendOptions = {}): Promise<CheckoutBackend> {
  const checkouts = openCheckouts({ dedupe: options.dedupe ?? true, siteUrl: 'https://shop.example' });
  const calls: BackendCall[] = [];
  const posts = new Map<string, number>();
  const faults: { readonly fault: Fault; readonly aim: Aim; left: number }[] = [];
  const arrivals = new EventEmitter().setMaxListeners(0);

  const nextFault = (call: BackendCall): Fault | undefined => {
    const entry = faults.find(({ aim, left }) => left > 0 && aimed(aim, call));
    if (entry === undefined) return undefined;
    entry.left -= 1;
    return entry.fault;
  };
  const server = await serveHttp((exchange) => {
    if (options.before?.(exchange) === true) return;
    const { response } = exchange;
    const call = callIn(exchange);
    if (call === undefined) return sendDocument(response, { status: 404, document: { message: 'no such path' } });
    calls.push(call);
    if (calls.length > MAX_RECORDED) calls.shift();
    for (const name of countersOf(call)) posts.set(name, (posts.get(name) ?? 0) + 1);
    const fault = nextFault(call);
    arrivals.emit('call', call);
    return behave(fault, () => checkouts.act(call.operation, call.sessionId, bodyOf(call), keyOf(call)), response);
  }, options.port);
  return {
    ...server,
    calls,
    posts: (sessionId, operation) => posts.get(counterOf(sessionId, operation)) ?? 0,
    orders: (sessionId) => checkouts.sessions.get(sessionId)?.orders.length ?? 0,
    allOrders: () => [...checkouts.sessions.values()].reduce((sum, { orders }) => sum + orders.length, 0),
    session: (sessionId) => checkouts.sessions.get(sessionId),
    misbehave: (fault, aim = {}, times = 1) => void faults.push({ fault, aim, left: times }),
    arrived: (aim = {}) =>
      new Promise((resolve) => {
        const look = (call: BackendCall): void => {
          if (!aimed(aim, call)) return;
          arrivals.off('call', look);
          resolve(call);
        };
        arrivals.on('call', look);
      }),
    forget: () => {
      calls.length = 0;
      faults.length = 0;
      posts.clear();
    },
  };
}

/** The call that a request makes; undefined when it is for no operation. */
function callIn({ request, body }: HttpExchange): BackendCall | undefined {
  const url = request.url ?? '';
  const route = ROUTES.find(({ method, pattern }) => method === request.method && pattern.test(url));
  if (route === undefined) return undefined;
  const [, id] = route.pattern.exec(url) ?? [];
  const { rawHeaders, headers } = request;
  const sessionId = id === undefined ? undefined : decodeURIComponent(id);
  return { operation: route.operation, sessionId, url, rawHeaders, headers, body };
}

function bodyOf({ body }: BackendCall): JsonObject {
  const parsed: unknown = body.length === 0 ? {} : JSON.parse(body.toString());
  return isObject(parsed as JsonObject) ? (parsed as JsonObject) : {};
}

function keyOf({ headers }: BackendCall): string | undefined {
  const key = headers['idempotency-key'];
  return typeof key === 'string' ? key : undefined;
}

/** Whether a call matches an aim. */
export function aimed({ operation, sessionId, text = '' }: Aim, call: BackendCall): boolean {
  if ((operation ?? call.operation) !== call.operation) return false;
  return (sessionId ?? call.sessionId) === call.sessionId && call.body.includes(text);
}

/** The counters that a POST of this call adds to. */
function countersOf({ operation, sessionId }: BackendCall): readonly string[] {
  if (sessionId === undefined || operation === 'getCheckoutSession') return [];
  return [counterOf(sessionId), counterOf(sessionId, operation)];
}

function counterOf(sessionId: string, operation?: Operation): string {
  return `${operation ?? ''} ${sessionId}`;
}
