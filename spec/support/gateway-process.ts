/** Gateways of specs in processes of their own, with the configuration of the local world. */

import { join } from 'node:path';
import {
  type GatewayProcess,
  type GatewayStart,
  startGatewayProcess,
} from '../../tools/local-world/gateway-process.ts';
import { COMPILE_CACHE } from './compile-cache.ts';
import { type ConfigObject, type WorldParts, worldConfig, writeConfig } from './config.ts';
import { freePorts } from './ports.ts';

export type { GatewayProcess, LogLine } from '../../tools/local-world/gateway-process.ts';

/** How a gateway is run. */
export interface Launch extends Pick<GatewayStart, 'execArgv' | 'onLine' | 'readyTimeoutMs'> {
  /** Its whole environment but PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the file that GATEWAY_ENTRY names, for example a bundle, else src/main.ts. */
  readonly entry?: string | undefined;
}

export interface GatewayOptions extends Launch, Pick<GatewayStart, 'configPath' | 'baseUrl'> {}

/** A gateway with its configuration written, which does not run yet. */
export interface PreparedGateway {
  readonly baseUrl: string;
  readonly managementUrl: string;
  readonly config: ConfigObject;
  readonly configPath: string;
  /** Starts it, without a drain unless `env` names one. */
  start(launch?: Launch): Promise<GatewayProcess>;
}

/** A configuration but for what `prepareGateway` chooses unless it is given. */
export type PreparedParts = Omit<WorldParts, 'ports' | 'storage'> & {
  /** Default: free ones. */
  readonly ports?: WorldParts['ports'] | undefined;
  /** Default: a SQLite file in the directory. */
  readonly storage?: WorldParts['storage'] | undefined;
};

const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** Writes the configuration of a gateway into a directory. */
export async function prepareGateway(directory: string, parts: PreparedParts): Promise<PreparedGateway> {
  const ports = parts.ports ?? (await twoFreePorts());
  const storage = parts.storage ?? { sqlite: { path: join(directory, `${ports.agents}.db`) } };
  const baseUrl = `http://127.0.0.1:${ports.agents}`;
  const { id } = worldConfig({ ...parts, ports, storage })['merchant'] as { readonly id: string };
  const publicBaseUrl = publicUrlOf(JSON.stringify([storage, id]), baseUrl);
  const config = worldConfig({ ...parts, ports, storage, publicBaseUrl });
  const configPath = join(directory, `${ports.agents}.yaml`);
  await writeConfig(configPath, config);
  return {
    baseUrl,
    managementUrl: `http://127.0.0.1:${ports.management}`,
    config,
    configPath,
    // No load balancer routes to it, so there is no traffic to wait for.
    start: ({ env, ...launch } = {}) =>
      startGateway({ ...launch, configPath, baseUrl, env: { GATEWAY_DRAIN_SECONDS: '0', ...env } }),
  };
}

const publicUrls = new Map<string, string>();

/** Gateways of one merchant over one store are replicas, which have one public URL. */
function publicUrlOf(service: string, baseUrl: string): string {
  const known = publicUrls.get(service) ?? baseUrl;
  publicUrls.set(service, known);
  return known;
}

async function twoFreePorts(): Promise<WorldParts['ports']> {
  const [agents = 0, management = 0] = await freePorts(2);
  return { agents, management };
}

/** Starts a gateway and waits until GET /ready is 200. @throws Error with its output otherwise */
export function startGateway({ entry, env, ...options }: GatewayOptions): Promise<GatewayProcess> {
  return startGatewayProcess({
    ...options,
    entry: entry ?? process.env['GATEWAY_ENTRY'] ?? MAIN,
    // A clean environment: variables of the developer's shell must not configure a test.
    env: { PATH: process.env['PATH'], ...COMPILE_CACHE, ...env },
  });
}
