/** A Redis primary and replicas that can be cut off. */

import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePorts } from './ports.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** A server of a group, and a connection of the test's own to it. */
export interface Member {
  readonly server: TestRedis;
  readonly port: number;
  readonly admin: Redis;
}

/** A primary and its replicas, all online. */
export interface ReplicatedRedis {
  readonly primary: Member;
  readonly replicas: readonly Member[];
  /** Cuts all replicas from the primary: later writes do not reach them. */
  cutOff(): void;
  /** Connects them again, and waits until all replicas have caught up. */
  reach(): Promise<void>;
  stop(): Promise<void>;
}

const PATIENCE_MS = 15_000;
const POLL_MS = 25;

/** Starts them on ports of their own; each replica follows over a proxy that can be cut. */
export async function startReplicatedRedis(count: number): Promise<ReplicatedRedis> {
  const ports = await freePorts(count + 1);
  const lines: TcpProxy[] = [];
  const members: Member[] = [];
  for (const port of ports) {
    const [first] = members;
    const line = first && (await startTcpProxy({ host: '127.0.0.1', port: first.port }));
    if (line !== undefined) lines.push(line);
    const following = line === undefined ? [] : ['--replicaof', '127.0.0.1', String(line.port)];
    const server = await startRedis({ port, args: ['--repl-diskless-sync-delay', '0', ...following] });
    const admin = new Redis({ path: server.socketPath });
    // Tests kill the servers under it; it reconnects by itself.
    admin.on('error', () => undefined);
    members.push({ server, port, admin });
  }
  const [primary, ...replicas] = members;
  if (primary === undefined) throw new Error('no ports');
  const caughtUp = async (): Promise<boolean> => {
    // Something to wait for: WAIT alone is content with what this connection has written.
    await primary.admin.set('acknowledged', '');
    return (await primary.admin.wait(count, 100)) === count;
  };
  await until(caughtUp, 'the replicas do not follow');
  return {
    primary,
    replicas,
    cutOff() {
      for (const line of lines) line.cut();
    },
    async reach() {
      for (const line of lines) line.mend();
      await until(caughtUp, 'the replicas do not follow');
    },
    async stop() {
      for (const { admin } of members) admin.disconnect();
      await Promise.all(members.map(({ server }) => server.stop()));
      await Promise.all(lines.map((line) => line.stop()));
    },
  };
}

/** Polls until it is so. @throws Error with the given words when time is up */
export async function until(so: () => Promise<boolean>, otherwise: string): Promise<void> {
  for (const deadline = Date.now() + PATIENCE_MS; !(await so().catch(() => false)); await delay(POLL_MS))
    if (Date.now() > deadline) throw new Error(otherwise);
}
