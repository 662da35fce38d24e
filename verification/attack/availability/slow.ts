/** Slow clients: heads, bodies and readings that never end. */

import { connect, type Socket } from 'node:net';

/**
 * The three ways of slowhttptest: heads that never end (-H), bodies that never end (-B), answers
 * that are hardly read (-X).
 */
export const SLOW_KINDS = ['headers', 'body', 'reading'] as const;
export type SlowKind = (typeof SLOW_KINDS)[number];

/** How often a slow client sends or reads, milliseconds. */
const DRIP_MS = 1_000;
/**
 * The answer that a slow reader requests: 5 MiB, more than the buffers of the kernel between it and
 * the gateway take.
 */
const LARGE_ANSWER = '/api/resources/free_archive/invoke';

/** Running slow clients. */
export interface SlowClients {
  /** How many still have their connection. */
  connected(): number;
  /** How many could connect. */
  readonly count: number;
  close(): void;
}

/** Opens `count` connections, a few at a time, and keeps all of them busy as slowly as can be. */
export async function startSlow(kind: SlowKind, count: number, url: string): Promise<SlowClients> {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  const timers = new Set<NodeJS.Timeout>();
  const one = async (): Promise<void> => {
    const socket = connect({ host: hostname, port: Number(port) });
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    open.add(socket);
    // The gateway closes the connections of slow clients.
    socket.on('error', () => undefined);
    const timer = setInterval(drip(kind, socket), DRIP_MS);
    timers.add(timer);
    socket.once('close', () => {
      open.delete(socket);
      clearInterval(timer);
    });
  };
  for (let at = 0; at < count; at += 32) await Promise.all(Array.from({ length: Math.min(32, count - at) }, one));
  return {
    connected: () => open.size,
    count,
    close() {
      for (const timer of timers) clearInterval(timer);
      for (const socket of open) socket.destroy();
    },
  };
}

/** Begins, and returns the action of every DRIP_MS. */
function drip(kind: SlowKind, socket: Socket): () => void {
  if (kind === 'headers') {
    socket.resume().write('POST /api/resources/free_echo/invoke HTTP/1.1\r\nhost: shop\r\n');
    return () => socket.write('x-slow: 1\r\n');
  }
  const post = (path: string, length: number): string =>
    `POST ${path} HTTP/1.1\r\nhost: shop\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
  if (kind === 'body') {
    socket.resume().write(`${post('/api/resources/free_echo/invoke', 4_096)}{"a":"`);
    return () => socket.write('x');
  }
  socket.pause().write(`${post(LARGE_ANSWER, 2)}{}`);
  // One read of the stream, at most 64 KiB; then nothing for a while.
  return () => void socket.read(1);
}
