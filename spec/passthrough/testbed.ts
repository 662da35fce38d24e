/** A gateway with the passthrough on, and merchants that a test writes itself. */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { head } from '../server/http/raw.ts';
import { type ConfigObject, NO_CHAIN, type WorldParts } from '../support/config.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { readMetrics } from '../support/read-metrics.ts';

/** The public address of these gateways; nothing listens there. */
export const PUBLIC_URL = 'https://api.shop.example';

/** The fields of a handshake, and what accepts it. */
export const WEBSOCKET: readonly string[] = [
  ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];
/** The answer to a handshake, with more lines in its head. */
export function accepting(req: IncomingMessage, lines: readonly string[] = []): string {
  const accept = createHash('sha1')
    .update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  return head([
    ...['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'],
    ...[`Sec-WebSocket-Accept: ${accept}`, ...lines],
  ]);
}
/** What declines one. */
export const DECLINED = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/** Resolves once `is` holds, which is looked at in every turn of the event loop. */
export async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setImmediate(resolve));
}

export interface PassthroughTestbed extends AsyncDisposable {
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
    [Symbol.asyncDispose]: () => gateway.close(),
  };
}

/** A merchant in this process. */
interface RawMerchant extends Disposable {
  readonly url: string;
  close(): void;
}

export interface Merchant extends RawMerchant {
  readonly server: Server;
}

/** One that speaks HTTP as Node does. */
export async function startMerchant(answer: RequestListener): Promise<Merchant> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, server, close, [Symbol.dispose]: close };
}

/** One that writes what the test says. */
export async function startRawMerchant(take: (socket: Socket) => void): Promise<RawMerchant> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    take(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close, [Symbol.dispose]: close };
}
