/** The whole local world: chain, backend, facilitator and a gateway process, wired and ready. */

import { randomBytes } from 'node:crypto';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import type { ConfigObject, WorldParts } from './config.ts';
import { startFacilitator } from './facilitator.ts';
import { type GatewayProcess, prepareGateway } from './gateway-process.ts';
import { type SampleBackend, startSampleBackend } from './sample-backend.ts';

/** What runs, and what a spec needs to talk to it. */
export interface World {
  readonly chain: Chain;
  readonly backend: SampleBackend;
  readonly gateway: GatewayProcess;
  readonly managementUrl: string;
  readonly config: ConfigObject;
  readonly configPath: string;
  readonly adminToken: string;
  readonly payTo: string;
  /** Starts the gateway again with the same configuration, after `gateway.kill()` or `stop()`. */
  restartGateway(): Promise<GatewayProcess>;
  /** Ends everything, last started first. */
  stop(): Promise<void>;
}

export interface WorldOptions {
  /** Default: the local rail of the gateway. `official`: the official facilitator over HTTP. */
  readonly facilitator?: 'local' | 'official';
  /** Default: a SQLite file in a temporary directory that goes away with the world. */
  readonly storage?: WorldParts['storage'];
  readonly overrides?: ConfigObject;
  /** Entry file of the gateway; default src/main.ts. */
  readonly entry?: string;
  /** Variables for the gateway, which gets none of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a complete local world. What had started is ended again when a later part fails. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-world-');
  const chain = ends.adopt(await startChain(), ({ stop }) => stop());
  const backend = ends.adopt(await startSampleBackend(), ({ stop }) => stop());
  const { overrides = {}, env = {}, entry, storage } = options;
  const adminToken = randomBytes(24).toString('base64url');
  const payTo = privateKeyToAddress(generatePrivateKey());
  const facilitator = await facilitatorFor(options, chain, ends);
  const parts = { backendUrl: backend.url, chain, storage, facilitator, adminToken, payTo, overrides };
  const { start, managementUrl, config, configPath } = await prepareGateway(directory, parts);
  const gateways = ends.use(new AsyncDisposableStack());
  const launch = async (): Promise<GatewayProcess> =>
    gateways.adopt(await start({ env, entry }), async ({ stop }) => void (await stop()));
  const gateway = await launch();
  const started = ends.move();
  return {
    chain,
    backend,
    gateway,
    managementUrl,
    config,
    configPath,
    adminToken,
    payTo,
    restartGateway: launch,
    stop: () => started.disposeAsync(),
  };
}

async function facilitatorFor(
  { facilitator = 'local' }: WorldOptions,
  chain: Chain,
  ends: AsyncDisposableStack,
): Promise<WorldParts['facilitator']> {
  if (facilitator === 'local') return { mode: 'local' };
  const { url } = ends.adopt(await startFacilitator(chain), ({ stop }) => stop());
  return { mode: 'remote', url };
}
