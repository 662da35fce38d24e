import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutProtocol, NO_CHAIN } from '../../adapters/acp/shop.ts';
import { type ConfigObject, type WorldParts, worldConfig, writeConfig } from '../config.ts';
import { type GatewayProcess, startGateway } from '../gateway-process.ts';
import { freePorts } from '../ports.ts';
import { OPERATOR_TOKEN } from '../shop.ts';

/** A gateway in a process of its own that serves checkouts. */
export interface CheckoutGateway {
  readonly url: string;
  readonly managementUrl: string;
  readonly process: GatewayProcess;
  /** Everything that it printed, as it stands in the file. */
  readonly logPath: string;
  /** GET with the operator token. */
  operator(path: string): Promise<Response>;
  /** Ends the process and removes its files. */
  stop(): Promise<void>;
}

export interface CheckoutGatewayParts {
  readonly merchantUrl: string;
  /** Default: a SQLite file that goes away with the gateway. */
  readonly storage?: WorldParts['storage'];
  /** Replace members of `protocols.acp`. */
  readonly acp?: ConfigObject;
  /** Merged into everything. */
  readonly overrides?: ConfigObject;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts it on free ports. */
export async function startCheckoutGateway(parts: CheckoutGatewayParts): Promise<CheckoutGateway> {
  const directory = await mkdtemp(join(tmpdir(), 'acg-checkout-gateway-'));
  const remove = () => rm(directory, { recursive: true, force: true });
  try {
    const [agents = 0, management = 0] = await freePorts(2);
    const config = worldConfig({
      merchantUrl: parts.merchantUrl,
      chain: NO_CHAIN,
      facilitator: { mode: 'local' },
      storage: parts.storage ?? { sqlite: { path: join(directory, 'gateway.db') } },
      ports: { agents, management },
      adminToken: OPERATOR_TOKEN,
      overrides: {
        payments: undefined,
        resources: undefined,
        protocols: { acp: checkoutProtocol(parts.acp) },
        ...parts.overrides,
      },
    });
    const configPath = join(directory, 'gateway.yaml');
    const logPath = join(directory, 'gateway.log');
    await writeConfig(configPath, config);
    const url = `http://127.0.0.1:${agents}`;
    const env = { GATEWAY_DRAIN_SECONDS: '0', ...parts.env };
    const gateway = await startGateway({ configPath, baseUrl: url, env, logPath });
    return {
      url,
      managementUrl: `http://127.0.0.1:${management}`,
      process: gateway,
      logPath,
      operator: (path) => fetch(`${url}${path}`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } }),
      async stop() {
        await gateway.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
