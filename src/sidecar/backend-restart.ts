/** Tells when a backend that was told to end has been replaced by its next process. */

import { connect } from 'node:net';

/** Between two connections, milliseconds: a container takes longer to come back. */
const LOOK_EVERY_MS = 100;
/** Longest wait for one connection, milliseconds. */
const CONNECT_MS = 1_000;

/** How a connection to the backend ended. `silent`: neither accepted nor refused in time. */
export type ConnectionEnd = 'opened' | 'refused' | 'silent';

/**
 * Resolves to true when a connection opens after one was refused: between them the old process
 * closed its port, however long it took to end, and an open port alone may still be the old one's.
 * Resolves to false after `atMostMs`, when no old process can be left, or when `signal` aborts.
 */
export async function backendReplaced(
  { look, atMostMs }: { readonly look: () => Promise<ConnectionEnd>; readonly atMostMs: number },
  signal: AbortSignal,
): Promise<boolean> {
  let over = false;
  const timer = setTimeout(() => {
    over = true;
  }, atMostMs);
  timer.unref();
  let refused = false;
  try {
    while (!over && !signal.aborted) {
      const end = await look();
      if (end === 'opened' && refused) return true;
      refused ||= end === 'refused';
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS).unref());
    }
    return false;
  } finally {
    clearTimeout(timer);
  }
}

/** Opens a connection and closes it. */
export function tryConnection(host: string, port: number): Promise<ConnectionEnd> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (result: ConnectionEnd): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => end('silent'), CONNECT_MS);
    socket.once('connect', () => end('opened'));
    socket.on('error', () => end('refused'));
  });
}
