import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { type AddressInfo, createServer, type Server } from 'node:net';

/** How a process ended: its exit code, or the signal that ended it. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Resolves when the process has ended, at once when it already has. */
export function ended(child: ChildProcess): Promise<Ending> {
  if (child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve({ code: child.exitCode, signal: child.signalCode });
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
}

/** SIGTERM, and SIGKILL when the process is still there after `graceMs`. */
export async function terminate(child: ChildProcess, graceMs: number): Promise<Ending> {
  const ending = ended(child);
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  try {
    return await ending;
  } finally {
    clearTimeout(timer);
  }
}

/** Below the ports that systems give to outgoing connections: those come and go, also while a gateway starts again. */
const PORTS = { from: 10_000, below: 32_000 } as const;

/**
 * `count` different ports of 127.0.0.1 that were free a moment ago, for programs that want their ports told. Another process
 * can take one in between: whoever uses it must report a taken port, not wait for ever.
 */
export async function freePorts(count: number): Promise<readonly number[]> {
  // All are held at once, so that no number comes twice.
  const held: Server[] = [];
  while (held.length < count) {
    const server = await listening(randomInt(PORTS.from, PORTS.below));
    if (server !== undefined) held.push(server);
  }
  const ports = held.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(held.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
  return ports;
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
