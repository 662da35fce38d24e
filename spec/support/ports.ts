/** Free ports for servers that must know theirs beforehand. */

import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';

/**
 * Below the ports that systems give to outgoing connections: those come and go, also while a
 * gateway starts again.
 */
const FIRST_PORT = 10_000;
/**
 * A process owns a whole block, so that no other one takes a port before it is used, or while a
 * gateway is down.
 */
const BLOCK_PORTS = 200;
const BLOCKS = 110;

/** The numbers of this process's block that were not given yet. */
let left: number[] = [];
let claiming: Promise<void> | undefined;

/**
 * `count` different ports of 127.0.0.1. No other process that asks here gets the same ones, and
 * none comes twice. A foreign program can still take one before it is used: a test must then
 * report the taken port, not wait for ever.
 */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    if (left.length === 0) {
      claiming ??= claimBlock().finally(() => {
        claiming = undefined;
      });
      await claiming;
    }
    const port = left.shift();
    if (port !== undefined && (await isFree(port))) ports.push(port);
  }
  return ports;
}

/** A block belongs to the process that listens on its first port, until that process ends. */
async function claimBlock(): Promise<void> {
  for (let tried = 0, block = randomInt(BLOCKS); tried < BLOCKS; tried += 1, block = (block + 1) % BLOCKS) {
    const first = FIRST_PORT + block * BLOCK_PORTS;
    const claim = await listening(first);
    if (claim === undefined) continue;
    claim.unref();
    left = Array.from({ length: BLOCK_PORTS - 1 }, (_, index) => first + 1 + index);
    return;
  }
  throw new Error(`every block of ports from ${FIRST_PORT} on is taken`);
}

async function isFree(port: number): Promise<boolean> {
  const server = await listening(port);
  if (server === undefined) return false;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return true;
}

/** Undefined when the port is taken. */
function listening(port: number): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
