import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { type Chain, startChain } from './chain.ts';
import { type ConfigObject, type WorldParts, worldConfig, writeConfig } from './config.ts';
import { startFacilitator } from './facilitator.ts';
import { type GatewayProcess, startGateway } from './gateway-process.ts';
import { type Merchant, startMerchant } from './merchant.ts';
import { freePorts } from './ports.ts';

/** Chain, merchant, facilitator and gateway, wired and ready. */
export interface World {
  readonly chain: Chain;
  readonly merchant: Merchant;
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
  /** Default: the local lane inside the gateway. `official`: the official facilitator over HTTP. */
  readonly facilitator?: 'local' | 'official';
  /** Default: a SQLite file in a temporary directory that goes away with the world. */
  readonly storage?: WorldParts['storage'];
  /** Default: free ports. */
  readonly ports?: WorldParts['ports'];
  readonly merchantPort?: number;
  /** Default: a random one. */
  readonly adminToken?: string;
  readonly overrides?: ConfigObject;
  /** Entry file of the gateway; default src/main.ts. */
  readonly entry?: string;
  /** Variables for the gateway, which otherwise sees none of this process's. */
  readonly env?: Readonly<Record<string, string>>;
  /** A file that gets what the gateway prints. */
  readonly logPath?: string;
}

/** Directories of worlds that were not stopped: each holds a key. */
const unfinished = new Set<string>();
process.once('exit', () => {
  for (const directory of unfinished) rmSync(directory, { recursive: true, force: true });
});

/** Starts a complete local world. What had started is ended again when a later part fails. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const running: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const end of running.splice(0).reverse()) await end();
  };
  try {
    const directory = await mkdtemp(join(tmpdir(), 'acg-world-'));
    unfinished.add(directory);
    running.push(async () => {
      await rm(directory, { recursive: true, force: true });
      unfinished.delete(directory);
    });
    const chain = await startChain();
    running.push(chain.stop);
    const merchant = await startMerchant({ port: options.merchantPort ?? 0 });
    running.push(merchant.stop);
    const facilitator = await facilitatorFor(options, chain, running);
    const ports = options.ports ?? (await twoFreePorts());
    const storage = options.storage ?? { sqlite: { path: join(directory, 'gateway.db') } };
    const adminToken = options.adminToken ?? randomBytes(24).toString('base64url');
    const payTo = privateKeyToAddress(generatePrivateKey());
    const { overrides = {} } = options;
    const parts = { merchantUrl: merchant.url, chain, storage, facilitator, ports, adminToken, payTo, overrides };
    const config = worldConfig(parts);
    const configPath = join(directory, 'gateway.yaml');
    await writeConfig(configPath, config);
    const gatewayOptions = {
      configPath,
      baseUrl: `http://127.0.0.1:${ports.agents}`,
      // Nobody routes to this gateway but its owner, who ends it: there are no endpoints to wait
      // for.
      env: { GATEWAY_DRAIN_SECONDS: '0', ...options.env },
      ...(options.entry === undefined ? {} : { entry: options.entry }),
      ...(options.logPath === undefined ? {} : { logPath: options.logPath }),
    };
    const launch = async () => {
      const gateway = await startGateway(gatewayOptions);
      running.push(gateway.stop);
      return gateway;
    };
    const gateway = await launch();
    const managementUrl = `http://127.0.0.1:${ports.management}`;
    return {
      chain,
      merchant,
      gateway,
      managementUrl,
      config,
      configPath,
      adminToken,
      payTo,
      restartGateway: launch,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function facilitatorFor(
  { facilitator = 'local' }: WorldOptions,
  chain: Chain,
  running: (() => Promise<unknown>)[],
): Promise<WorldParts['facilitator']> {
  if (facilitator === 'local') return { mode: 'local' };
  const { url, stop } = await startFacilitator(chain);
  running.push(stop);
  return { mode: 'remote', url };
}

async function twoFreePorts(): Promise<WorldParts['ports']> {
  const [agents = 0, management = 0] = await freePorts(2);
  return { agents, management };
}
