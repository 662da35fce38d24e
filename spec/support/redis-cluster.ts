/** A Redis cluster of three primaries. */

import { Redis } from 'ioredis';
import { freePorts } from './ports.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { until } from './redis-replicas.ts';

/** Three primaries that share the slots. */
export interface RedisCluster {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly servers: readonly TestRedis[];
  /** A connection of the test's own to each server. */
  readonly admins: readonly Redis[];
  stop(): Promise<void>;
}

const SIZE = 3;
const SLOTS = 16_384;

/** Starts them and waits until each of them serves. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const ports = await freePorts(2 * SIZE);
  const members = await Promise.all(
    Array.from({ length: SIZE }, async (_, i) => {
      const [port = 0, busPort = 0] = [ports[2 * i], ports[2 * i + 1]];
      const cluster = ['--cluster-enabled', 'yes', '--cluster-port', String(busPort), '--cluster-node-timeout', '2000'];
      // With `everysec` a write may wait behind an fsync, and `kill -9` takes it along.
      const args = [...cluster, '--appendfsync', 'always'];
      const server = await startRedis({ port, args });
      return { server, port, busPort, admin: new Redis({ path: server.socketPath, enableReadyCheck: false }) };
    }),
  );
  const [first] = members;
  for (const [i, { admin, port, busPort }] of members.entries()) {
    await admin.call(
      'CLUSTER',
      'ADDSLOTSRANGE',
      Math.ceil((i * SLOTS) / SIZE),
      Math.ceil(((i + 1) * SLOTS) / SIZE) - 1,
    );
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    if (i > 0) await first?.admin.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
  }
  const served = async (): Promise<boolean> => {
    const states = await Promise.all(members.map(({ admin }) => admin.call('CLUSTER', 'INFO')));
    return states.every((text) => /cluster_state:ok/.test(String(text)) && /cluster_known_nodes:3/.test(String(text)));
  };
  await until(served, 'the cluster does not come up');
  return {
    nodes: ports.filter((_, i) => i % 2 === 0).map((port) => ({ host: '127.0.0.1', port })),
    servers: members.map(({ server }) => server),
    admins: members.map(({ admin }) => admin),
    async stop() {
      for (const { admin } of members) admin.disconnect();
      await Promise.all(members.map(({ server }) => server.stop()));
    },
  };
}
