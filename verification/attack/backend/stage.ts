/** A gateway before a backend that writes raw bytes, on a real chain. */

import type { Socket } from 'node:net';
import { type RawBackend, type RawRequest, rawBackend } from '../../../spec/backend/raw-backend.ts';
import { type Buyer, createBuyer } from '../../../spec/support/buyer.ts';
import { CURRENCY } from '../../../spec/support/config.ts';
import { openGateway, type TestGateway } from '../../../spec/support/gateway.ts';
import { proofFor } from '../../../spec/support/testbed.ts';
import type { BackendFailure } from '../../../src/backend/backend-exchange.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { ALL_CHANNELS, buy, type Channel, type Seen } from '../payments/channels.ts';

/** The answer of a backend: bytes to write, or an action. */
export type Action = string | ((socket: Socket, request: RawRequest) => void);

/**
 * Short, so that a slow backend delays no test; long enough for a fast one on a busy machine.
 * Milliseconds.
 */
const TIMEOUT_MS = 1_000;
/** Largest answer of the resources here, bytes. */
export const CAP_BYTES = 4_096;
/** The same of `bulk`: the most that a message can carry. */
export const BULK_BYTES = 1_048_576;
/** The price of every resource here, base units. */
export const PRICE_UNITS = 1_000n;
/** The answer of an honest backend. */
export const GOOD = '{"good":true}';

/** A gateway with a backend that writes raw bytes, a real chain and a buyer. */
export interface HostileStage {
  readonly gateway: TestGateway;
  readonly backend: RawBackend;
  readonly buyer: Buyer;
  /** Sets what the backend does from now on. */
  behave(action: Action): void;
  /** A fresh proof for a resource. */
  proof(resourceId: string): Promise<string>;
  call(channel: Channel, resourceId: string, proof?: string): Promise<Seen>;
  /** The balance of the payee, base units. */
  income(): Promise<bigint>;
  close(): Promise<void>;
}

/** A well-formed answer. */
export function wellFormed(body: string, head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json'): string {
  return `${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

export async function openHostileStage(): Promise<HostileStage> {
  let action: Action = wellFormed(GOOD);
  const chain: Chain = await startChain();
  const backend = await rawBackend((socket, request) => {
    if (typeof action === 'string') socket.write(action, 'latin1');
    else action(socket, request);
  });
  const limits = { timeoutMs: TIMEOUT_MS, maxResponseBytes: CAP_BYTES };
  const gateway = await openGateway({
    chain,
    backendUrl: backend.origin,
    facilitator: { mode: 'local' },
    overrides: {
      ...ALL_CHANNELS,
      resources: {
        gift: resource({ ...limits, method: 'GET', path: '/gift' }, false),
        goods: resource({ ...limits, method: 'GET', path: '/goods' }, true),
        bulk: resource({ ...limits, maxResponseBytes: BULK_BYTES, method: 'GET', path: '/bulk' }, true),
        single: resource({ ...limits, method: 'POST', path: '/single' }, true),
      },
    },
  });
  const buyer = await createBuyer(chain);
  return {
    gateway,
    backend,
    buyer,
    behave: (next) => {
      action = next;
    },
    proof: (resourceId) => proofFor(gateway, buyer, resourceId),
    call: (channel, resourceId, proof) => buy(gateway.url, channel, { resourceId, proof }),
    income: () => chain.balanceOf(gateway.config.x402?.payTo ?? ''),
    async close() {
      await gateway.close();
      await Promise.all([backend.close(), chain.stop()]);
    },
  };
}

function resource(backend: object, paid: boolean): object {
  return {
    name: 'Trap',
    inputSchema: { type: 'object', properties: {} },
    backend,
    pricing: paid ? { type: 'fixed', amount: '0.001', currency: CURRENCY } : { type: 'free' },
    expose: ['http', 'mcp', 'a2a'],
    payments: paid ? ['x402'] : [],
  };
}

/** Marks every text that must not reach the agent. */
export const CANARY = 'canary-4e1f';

/**
 * What an agent may see. `delivered`: the body, over every channel. `failed`: only a text of the
 * gateway. `cut`: over HTTP the head was sent already, so the connection breaks; in a message it is
 * reported as a failure.
 */
export type Outcome =
  | { readonly kind: 'delivered'; readonly body: string }
  | { readonly kind: 'failed'; readonly reason?: BackendFailure | 'redirect_not_followed'; readonly status?: number }
  | { readonly kind: 'cut'; readonly reason: BackendFailure };

/** One hostile answer of a backend. */
export interface HostileAnswer {
  readonly name: string;
  readonly action: Action;
  readonly outcome: Outcome;
}

export const OK = 'HTTP/1.1 200 OK\r\n';
export const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
export const HELLO = 'content-length: 5\r\n\r\nhello';
/** Between two bytes of a slow backend, milliseconds. */
const TRICKLE_MS = 10;

export const hello: Outcome = { kind: 'delivered', body: 'hello' };
export const broken: Outcome = { kind: 'failed', reason: 'transport' };
export const late: Outcome = { kind: 'failed', reason: 'timeout' };
export const cut: Outcome = { kind: 'cut', reason: 'transport' };
/** A failure of which only the status is reported. */
export const refusedStatus = (status: number): Outcome => ({ kind: 'failed', status });
export const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

/** Writes `piece` for ever, slowly. */
export function trickle(head: string, piece = 'x'): (socket: Socket) => void {
  return (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(piece), TRICKLE_MS);
    socket.once('close', () => clearInterval(timer));
  };
}

/** Writes `piece` for ever, as fast as it is read. */
export function flood(head: string, piece: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(head);
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on('drain', more);
    more();
  };
}
export const ends = (bytes: string) => (socket: Socket) => void socket.end(bytes);
export const answer = (name: string, action: Action, outcome: Outcome): HostileAnswer => ({ name, action, outcome });
