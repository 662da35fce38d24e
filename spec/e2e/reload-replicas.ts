/** Gateways in processes of their own over one Redis, each with mounted files of its own. */

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stringify } from 'yaml';
import { type ConfigObject, type WorldParts, worldConfig } from '../support/config.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { type MountedVolume, mountVolume } from '../support/mounted-volume.ts';
import { freePorts } from '../support/ports.ts';

/** What is published to a replica at a time. */
export interface Published {
  /** Price of `market_report`, display units. */
  readonly price: string;
  /** The lines of the file with the operator token. */
  readonly tokens: readonly string[];
  readonly more?: ConfigObject;
}

/** One replica and its volumes. */
export interface Replica {
  readonly process: GatewayProcess;
  readonly url: string;
  readonly managementUrl: string;
  readonly config: MountedVolume;
  /** Publishes both volumes and resolves when the gateway uses what they hold. */
  publish(next: Published): Promise<void>;
  invoke(headers?: Readonly<Record<string, string>>): Promise<Response>;
  operator(token: string): Promise<number>;
}

export type ReplicaParts = Pick<WorldParts, 'chain' | 'backendUrl' | 'facilitator' | 'storage' | 'payTo'> & {
  readonly directory: string;
};

/** The resource whose price changes, and an input for it. */
export const RESOURCE = 'market_report';
export const INPUT = { city: 'Berlin' };
/** Both replicas sell for one merchant, at one public address. */
const MERCHANT = { publicBaseUrl: 'https://shop.example' };
const POLL_MS = 10;

/** The configuration file of a replica. */
export function configText(parts: ReplicaParts, ports: WorldParts['ports'], { price, more = {} }: Published): string {
  const { directory: _directory, ...world } = parts;
  const overrides = { merchant: MERCHANT, resources: { [RESOURCE]: { pricing: { amount: price } } }, ...more };
  return stringify(worldConfig({ ...world, ports, overrides }), { aliasDuplicateObjects: false });
}

/** Starts a replica with what is published first. */
export async function startReplica(name: string, parts: ReplicaParts, first: Published): Promise<Replica> {
  const [agents = 0, management = 0] = await freePorts(2);
  const ports = { agents, management };
  const textOf = (next: Published): string => configText(parts, ports, next);
  const lines = (tokens: readonly string[]): string => `${tokens.join('\n')}\n`;
  const config = await mountVolume(join(parts.directory, name, 'config'), { 'gateway.yaml': textOf(first) });
  const secret = await mountVolume(join(parts.directory, name, 'secret'), { ADMIN_TOKEN: lines(first.tokens) });
  const url = `http://127.0.0.1:${agents}`;
  const process = await startGateway({
    configPath: join(config.path, 'gateway.yaml'),
    baseUrl: url,
    env: { GATEWAY_DRAIN_SECONDS: '0', ADMIN_TOKEN_FILE: join(secret.path, 'ADMIN_TOKEN') },
  });
  const operator = async (token: string): Promise<number> => {
    const { status } = await fetch(`${url}/api/events?limit=1`, { headers: { authorization: `Bearer ${token}` } });
    return status;
  };
  const uses = async ({ price, tokens }: Published): Promise<boolean> => {
    const listed = (await (await fetch(`${url}/api/resources`)).json()) as Listing;
    const { pricing } = listed.resources.find(({ id }) => id === RESOURCE) ?? {};
    return pricing?.amount === price && (await operator(tokens[0] ?? '')) === 200;
  };
  return {
    ...{ process, url, config, operator },
    managementUrl: `http://127.0.0.1:${management}`,
    async publish(next) {
      await secret.publish({ ADMIN_TOKEN: lines(next.tokens) });
      await config.publish({ 'gateway.yaml': textOf(next) });
      while (!(await uses(next))) await delay(POLL_MS);
    },
    invoke: (headers = {}) =>
      fetch(`${url}/api/resources/${RESOURCE}/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(INPUT),
      }),
  };
}

interface Listing {
  readonly resources: readonly { readonly id: string; readonly pricing?: { readonly amount?: string } }[];
}
