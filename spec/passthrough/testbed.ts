/** A gateway with the passthrough on, and merchants that a test writes itself. */

import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { type ConfigObject, NO_CHAIN, type WorldParts } from '../support/config.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { readMetrics } from '../support/read-metrics.ts';

/** The public address of these gateways; nothing listens there. */
export const PUBLIC_URL = 'https://api.shop.example';

export interface PassthroughTestbed {
  readonly gateway: TestGateway;
  readonly url: string;
  /** The lines of the access log, once there are this many that pass. */
  passedLines(count: number): Promise<readonly Readonly<Record<string, unknown>>[]>;
  metric(name: string): Promise<string>;
  close(): Promise<void>;
}

export interface PassthroughTestbedParts {
  readonly backendUrl: string;
  readonly passthrough?: ConfigObject;
  readonly overrides?: ConfigObject;
  /** Default: local, which no call asks that only passes. */
  readonly facilitator?: WorldParts['facilitator'];
}

export async function openPassthroughTestbed(parts: PassthroughTestbedParts): Promise<PassthroughTestbed> {
  const { overrides = {}, passthrough = {}, backendUrl, facilitator = { mode: 'local' } } = parts;
  const gateway = await openGateway({
    chain: NO_CHAIN,
    backendUrl,
    facilitator,
    overrides: {
      merchant: { publicBaseUrl: PUBLIC_URL },
      ...overrides,
      backend: { passthrough: { enabled: true, ...passthrough } },
    },
  });
  const lines = () =>
    gateway.logLines.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ passed }) => passed === true);
  return {
    gateway,
    url: gateway.url,
    async passedLines(count) {
      while (lines().length < count) await new Promise((resolve) => setTimeout(resolve, 5));
      return lines();
    },
    async metric(name) {
      const text = await readMetrics(gateway.managementUrl);
      return text.split('\n').find((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`)) ?? '';
    },
    close: () => gateway.close(),
  };
}

/** A merchant in this process. */
export interface Merchant {
  readonly url: string;
  readonly server: Server;
  close(): void;
}

/** One that speaks HTTP as Node does. */
export async function startMerchant(answer: RequestListener): Promise<Merchant> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** One that writes what the test says. */
export async function startRawMerchant(
  take: (socket: Socket) => void,
): Promise<{ readonly url: string; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    take(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
