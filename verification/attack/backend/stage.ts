/** A gateway before a backend that writes raw bytes, on a real chain. */

import type { Socket } from 'node:net';
import { type RawBackend, type RawRequest, rawBackend } from '../../../spec/backend/raw-backend.ts';
import { type Buyer, createBuyer } from '../../../spec/support/buyer.ts';
import { type Chain, startChain } from '../../../spec/support/chain.ts';
import { CURRENCY } from '../../../spec/support/config.ts';
import { openGateway, type TestGateway } from '../../../spec/support/gateway.ts';
import { proofFor } from '../../../spec/support/testbed.ts';
import { ALL_CHANNELS, buy, type Channel, type Seen } from '../payments/channels.ts';

/** What a merchant does with a request: bytes to write, or a deed. */
export type Deed = string | ((socket: Socket, request: RawRequest) => void);

/**
 * Short, so that a merchant who is slow holds no test up; long enough for one who is not, on a busy
 * machine. Milliseconds.
 */
export const TIMEOUT_MS = 1_000;
/** Largest answer of the resources here, bytes. */
export const CAP_BYTES = 4_096;
/** The same of `bulk`: as much as a message can carry. */
export const BULK_BYTES = 1_048_576;
/** What every resource here costs, base units. */
export const PRICE_UNITS = 1_000n;
/** What the merchant answers while he behaves. */
export const GOOD = '{"good":true}';

/** A shop with a merchant that speaks raw bytes, a real chain behind it, and a buyer. */
export interface HostileStage {
  readonly gateway: TestGateway;
  readonly merchant: RawBackend;
  readonly buyer: Buyer;
  /** What the merchant does from now on. */
  behave(deed: Deed): void;
  /** A fresh proof for a resource. */
  proof(resourceId: string): Promise<string>;
  call(channel: Channel, resourceId: string, proof?: string): Promise<Seen>;
  /** Base units that the payee has. */
  income(): Promise<bigint>;
  close(): Promise<void>;
}

/** A well-formed answer. */
export function wellFormed(body: string, head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json'): string {
  return `${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

export async function openHostileStage(): Promise<HostileStage> {
  let deed: Deed = wellFormed(GOOD);
  const chain: Chain = await startChain();
  const merchant = await rawBackend((socket, request) => {
    if (typeof deed === 'string') socket.write(deed, 'latin1');
    else deed(socket, request);
  });
  const backend = { timeoutMs: TIMEOUT_MS, maxResponseBytes: CAP_BYTES };
  const gateway = await openGateway({
    chain,
    backendUrl: merchant.origin,
    facilitator: { mode: 'local' },
    overrides: {
      ...ALL_CHANNELS,
      resources: {
        gift: resource({ ...backend, method: 'GET', path: '/gift' }, false),
        goods: resource({ ...backend, method: 'GET', path: '/goods' }, true),
        bulk: resource({ ...backend, maxResponseBytes: BULK_BYTES, method: 'GET', path: '/bulk' }, true),
        order: resource({ ...backend, method: 'POST', path: '/order' }, true),
      },
    },
  });
  const buyer = await createBuyer(chain);
  return {
    gateway,
    merchant,
    buyer,
    behave: (next) => {
      deed = next;
    },
    proof: (resourceId) => proofFor(gateway, buyer, resourceId),
    call: (channel, resourceId, proof) => buy(gateway.url, channel, { resourceId, proof }),
    income: () => chain.balanceOf(gateway.config.x402?.payTo ?? ''),
    async close() {
      await gateway.close();
      await Promise.all([merchant.close(), chain.stop()]);
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
