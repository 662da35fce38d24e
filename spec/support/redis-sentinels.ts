/** Redis sentinels that watch one primary. */

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { terminate } from '../../tools/local-world/child.ts';
import { freePorts } from './ports.ts';
import { spawnServer } from './redis.ts';
import { until } from './redis-replicas.ts';

/** Sentinels that watch one primary. */
export interface Sentinels {
  /** What they call the primary. */
  readonly name: string;
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** The port of the primary as they know it now. */
  primaryPort(): Promise<number>;
  stop(): Promise<void>;
}

const NAME = 'shop';
const STOP_GRACE_MS = 2_000;
/** How long a primary may be silent before it counts as gone, milliseconds. */
const DOWN_AFTER_MS = 500;
/** A second failover has to wait for twice this, milliseconds. */
const FAILOVER_MS = 2_000;

/** Starts them and waits until they know each other and agree that they could fail over. */
export async function startSentinels(count: number, primaryPort: number): Promise<Sentinels> {
  const ports = await freePorts(count);
  const directory = mkdtempSync(join(tmpdir(), 'acg-sentinel-'));
  const quorum = Math.floor(count / 2) + 1;
  const running: ChildProcess[] = [];
  for (const port of ports) {
    // A sentinel writes what it learns into its configuration.
    const file = join(directory, `${port}.conf`);
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${directory}`,
      `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} ${quorum}`,
      `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${NAME} ${FAILOVER_MS}`,
      `sentinel parallel-syncs ${NAME} 2`,
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    running.push(await spawnServer([file, '--sentinel'], /\+monitor master/));
  }
  const clients = ports.map((port) => {
    const client = new Redis({ host: '127.0.0.1', port, enableReadyCheck: false });
    client.on('error', () => undefined);
    return client;
  });
  const agree = async (): Promise<boolean> => {
    for (const client of clients) {
      const verdict = String(await client.call('SENTINEL', 'CKQUORUM', NAME));
      if (!verdict.startsWith(`OK ${count} usable`)) return false;
    }
    return true;
  };
  await until(agree, 'the sentinels do not know each other');
  return {
    name: NAME,
    nodes: ports.map((port) => ({ host: '127.0.0.1', port })),
    async primaryPort() {
      const [client] = clients;
      const address = await client?.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
      return Number(Array.isArray(address) ? address[1] : 0);
    },
    async stop() {
      for (const client of clients) client.disconnect();
      await Promise.all(running.map((child) => terminate(child, STOP_GRACE_MS)));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
