/** A world in which `acg doctor` finds nothing, and what it finds after one change. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { Finding } from '../../../src/cli/doctor/check.ts';
import { diagnose } from '../../../src/cli/doctor.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import {
  type ConfigObject,
  CURRENCY,
  merged,
  type WorldParts,
  worldConfig,
  writeConfig,
} from '../../support/config.ts';
import { type Facilitator, startFacilitator } from '../../support/facilitator.ts';
import { freePorts } from '../../support/ports.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { sampleResources } from '../../support/resources.ts';
import { type SampleBackend, startSampleBackend } from '../../support/sample-backend.ts';

/** The worst finding of each check, by its name. */
type Statuses = Readonly<Record<string, Finding['status']>>;

export interface CheckedWorld {
  readonly redis: TestRedis;
  /** A connection of the test's own. */
  readonly admin: Redis;
  readonly chain: Chain;
  readonly facilitator: Facilitator;
  readonly backend: SampleBackend;
  readonly folder: string;
  /** What its configuration is made from. */
  readonly parts: WorldParts;
  /** Writes the configuration with these changes, and says where. */
  configured(changes?: ConfigObject): Promise<string>;
  /** What the doctor finds with these changes: the worst of each check, and all texts. */
  examined(changes?: ConfigObject): Promise<{ readonly statuses: Statuses; readonly text: string }>;
}

const WORST_FIRST: readonly Finding['status'][] = ['FAIL', 'WARN', 'SKIP', 'PASS'];
/** The others are the same operations at another price, which is warned of. */
const KEPT: ReadonlySet<string> = new Set(['market_report', 'cities']);
const SOLD = Object.fromEntries(
  Object.keys(sampleResources(CURRENCY)).flatMap((id) => (KEPT.has(id) ? [] : [[id, undefined]])),
);

/** Redis, chain, the official facilitator and the sample merchant; no gateway runs. */
export async function openCheckedWorld(
  ends: AsyncDisposableStack,
  own: Partial<Pick<WorldParts, 'facilitator' | 'storage'>> = {},
): Promise<CheckedWorld> {
  const folder = await temporaryDirectory(ends, 'acg-doctor-');
  const redis = ends.adopt(await startRedis({ args: ['--appendfsync', 'always'] }), ({ stop }) => stop());
  const admin = ends.adopt(new Redis({ path: redis.socketPath }), (client) => client.disconnect());
  const chain = ends.adopt(await startChain(), ({ stop }) => stop());
  const facilitator = ends.adopt(await startFacilitator(chain), ({ stop }) => stop());
  const backend = ends.adopt(await startSampleBackend(), ({ stop }) => stop());
  const [agents = 0, management = 0] = await freePorts(2);
  const parts: WorldParts = {
    ...{ chain, backendUrl: backend.url, ports: { agents, management } },
    adminToken: randomBytes(24).toString('hex'),
    payTo: privateKeyToAddress(generatePrivateKey()),
    storage: { redis: { url: redis.url } },
    facilitator: { mode: 'remote', url: facilitator.url },
    overrides: {
      storage: { sealing: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } },
      resources: SOLD,
    },
    ...own,
  };
  const config = worldConfig(parts);
  let written = 0;
  const configured = async (changes: ConfigObject = {}): Promise<string> => {
    written += 1;
    const path = join(folder, `${written}.yaml`);
    await writeConfig(path, merged(config, changes));
    return path;
  };
  return {
    ...{ redis, admin, chain, facilitator, backend, folder, parts, configured },
    async examined(changes) {
      const findings = await diagnose(await configured(changes), {});
      const byCheck = Map.groupBy(findings, ({ check }) => check);
      const worst = (some: readonly Finding[]): Finding['status'] =>
        WORST_FIRST.find((wanted) => some.some(({ status }) => status === wanted)) ?? 'PASS';
      const statuses = Object.fromEntries([...byCheck].map(([check, some]) => [check, worst(some)]));
      const lines = findings.map(
        ({ status, check, message, remedy }) => `${status} ${check}: ${[message, remedy].filter(Boolean).join('; ')}`,
      );
      return { statuses, text: lines.join('\n') };
    },
  };
}

/** What each check finds where nothing is changed: none fails, and none warns. */
export async function healthyStatuses({ examined }: CheckedWorld): Promise<Statuses> {
  const { statuses } = await examined();
  assert.deepEqual(
    Object.entries(statuses).filter(([, status]) => status === 'FAIL' || status === 'WARN'),
    [],
  );
  return statuses;
}
