import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { OPERATION_RULES, OPERATIONS, type Operation, SESSION_PLACE } from '../../../src/checkouts/operations.ts';
import { isObject, type JsonObject } from '../../../src/json/types.ts';
import { openDesk } from './desk.ts';
import { behave, type Fault, sendDocument } from './faults.ts';
import type { Session } from './session.ts';

/** A call as it reached the merchant. */
export interface MerchantCall {
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

/** Which calls a fault is for; all of them unless said. */
export interface Aim {
  readonly operation?: Operation;
  readonly sessionId?: string;
  /** What the body holds somewhere: two creates differ in nothing else. */
  readonly text?: string;
}

/** A merchant with real checkouts in memory, that keeps count and misbehaves on demand. */
export interface CheckoutMerchant {
  readonly url: string;
  /** In order of arrival; the newest 10,000. */
  readonly calls: readonly MerchantCall[];
  /** How many POSTs came for a session, whatever was answered. */
  posts(sessionId: string, operation?: Operation): number;
  /** How many orders were made of a session: what must never be more than one. */
  orders(sessionId: string): number;
  /** Orders of all sessions. */
  allOrders(): number;
  session(sessionId: string): Session | undefined;
  /**
   * The next call that this is for meets the fault, and so do the `times - 1` after it. Faults for
   * the same calls wait in line.
   */
  misbehave(fault: Fault, aim?: Aim, times?: number): void;
  /** Resolves with the next such call, as soon as its body has come and before anything is done. */
  arrived(aim?: Aim): Promise<MerchantCall>;
  /** Forgets calls and faults, not the sessions. */
  forget(): void;
  /** Ends also the connections whose answers are still to come. */
  stop(): Promise<void>;
}

/** How a merchant is. */
export interface MerchantOptions {
  /** 0, the default, takes a free one. */
  readonly port?: number;
  /**
   * Whether it looks at the idempotency key; true unless said. A merchant that does not makes an
   * order for every complete.
   */
  readonly dedupe?: boolean;
  /** How long everything takes, milliseconds; it acts at once and answers later. */
  readonly slowMs?: number;
  /** Sees every request first. True: it answered. */
  readonly before?: (request: IncomingMessage, response: ServerResponse, merchant: CheckoutMerchant) => boolean;
}

const MAX_RECORDED = 10_000;
const ROUTES = OPERATIONS.map((operation) => {
  const { method, path } = OPERATION_RULES[operation];
  return { operation, method, pattern: new RegExp(`^${path.replace(SESSION_PLACE, '([^/]+)')}$`) };
});

/** Starts it on 127.0.0.1. */
export async function startCheckoutMerchant(options: MerchantOptions = {}): Promise<CheckoutMerchant> {
  const desk = openDesk({ dedupe: options.dedupe ?? true, shop: 'https://shop.example' });
  const calls: MerchantCall[] = [];
  const posts = new Map<string, number>();
  const faults: { readonly fault: Fault; readonly aim: Aim; left: number }[] = [];
  const arrivals = new EventEmitter().setMaxListeners(0);

  const nextFault = (call: MerchantCall): Fault | undefined => {
    const entry = faults.find(({ aim, left }) => left > 0 && aimed(aim, call));
    if (entry === undefined) return undefined;
    entry.left -= 1;
    return entry.fault;
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const call = await received(request);
    if (call === undefined) return sendDocument(response, { status: 404, document: { message: 'no such path' } });
    calls.push(call);
    if (calls.length > MAX_RECORDED) calls.shift();
    for (const place of placesOf(call)) posts.set(place, (posts.get(place) ?? 0) + 1);
    const fault = nextFault(call);
    arrivals.emit('call', call);
    const act = () => desk.act(call.operation, call.sessionId, bodyOf(call), keyOf(call));
    if (options.slowMs === undefined) return behave(fault, act, response);
    const said = act();
    await delay(options.slowMs);
    return behave(fault, () => said, response);
  };
  const server = createServer((request, response) => {
    if (options.before?.(request, response, merchant) === true) return;
    // Only a caller that left while its answer was being made ends here.
    serve(request, response).catch(() => response.destroy());
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const merchant: CheckoutMerchant = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    posts: (sessionId, operation) => posts.get(place(sessionId, operation)) ?? 0,
    orders: (sessionId) => desk.sessions.get(sessionId)?.orders.length ?? 0,
    allOrders: () => [...desk.sessions.values()].reduce((sum, { orders }) => sum + orders.length, 0),
    session: (sessionId) => desk.sessions.get(sessionId),
    misbehave: (fault, aim = {}, times = 1) => void faults.push({ fault, aim, left: times }),
    arrived: (aim = {}) =>
      new Promise((resolve) => {
        const look = (call: MerchantCall): void => {
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
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return merchant;
}

/** Reads a call to the end of its body; undefined when it is for no operation. */
async function received(request: IncomingMessage): Promise<MerchantCall | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const url = request.url ?? '';
  const route = ROUTES.find(({ method, pattern }) => method === request.method && pattern.test(url));
  if (route === undefined) return undefined;
  const [, id] = route.pattern.exec(url) ?? [];
  const { rawHeaders, headers } = request;
  const sessionId = id === undefined ? undefined : decodeURIComponent(id);
  return { operation: route.operation, sessionId, url, rawHeaders, headers, body: Buffer.concat(chunks) };
}

function bodyOf({ body }: MerchantCall): JsonObject {
  const parsed: unknown = body.length === 0 ? {} : JSON.parse(body.toString());
  return isObject(parsed as JsonObject) ? (parsed as JsonObject) : {};
}

function keyOf({ headers }: MerchantCall): string | undefined {
  const key = headers['idempotency-key'];
  return typeof key === 'string' ? key : undefined;
}

/** Whether a call is one of those. */
export function aimed({ operation, sessionId, text = '' }: Aim, call: MerchantCall): boolean {
  if ((operation ?? call.operation) !== call.operation) return false;
  return (sessionId ?? call.sessionId) === call.sessionId && call.body.includes(text);
}

function placesOf({ operation, sessionId }: MerchantCall): readonly string[] {
  if (sessionId === undefined || operation === 'getCheckoutSession') return [];
  return [place(sessionId), place(sessionId, operation)];
}

function place(sessionId: string, operation?: Operation): string {
  return `${operation ?? ''} ${sessionId}`;
}
