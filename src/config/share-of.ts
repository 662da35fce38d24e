/** Divides the bounds of a configuration among the processes of one gateway. */

import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { partOf } from '../part-of.ts';
import { ProblemList } from '../problems/problem.ts';
import type { GatewayConfig } from './document/config.ts';

const MOST_WORKERS = schema.properties.server.properties.workers.maximum;

type Bounded = Pick<GatewayConfig, 'limits' | 'protocols' | 'x402' | 'processes'>;

/** The bounds of a gateway that its processes share, by the path of the setting. */
export function dividedBounds({
  limits,
  protocols,
}: Pick<GatewayConfig, 'limits' | 'protocols'>): Readonly<Record<string, number>> {
  const { rate, unpaidWork, ...bounds } = limits;
  const { windowMs: _window, ...unpaid } = unpaidWork;
  const { acp } = protocols;
  return Object.fromEntries([
    ...Object.entries(bounds).map(([name, bound]) => [`limits.${name}`, bound] as const),
    ...Object.entries(unpaid).map(([name, bound]) => [`limits.unpaidWork.${name}`, bound] as const),
    ...Object.entries(rate ?? {}).map(([name, bound]) => [`limits.rate.${name}`, bound] as const),
    ...(acp.enabled ? [['protocols.acp.limits.maxInFlight', acp.maxInFlight] as const] : []),
  ]);
}

/**
 * The configuration as one of so many processes has it: a whole part of each bound, so that all of
 * them together have at most what is configured. `processesOf` refuses bounds of which a process
 * would get nothing.
 */
export function shareOf<Config extends Bounded>(config: Config, processes: number): Config {
  if (processes === 1) return config;
  const part = (bound: number): number => partOf(bound, processes);
  const { limits, protocols, x402 } = config;
  const { acp } = protocols;
  return {
    ...config,
    processes,
    limits: {
      maxInFlight: part(limits.maxInFlight),
      maxStreams: part(limits.maxStreams),
      maxPassthrough: part(limits.maxPassthrough),
      maxUpgrades: part(limits.maxUpgrades),
      maxBufferedBytes: part(limits.maxBufferedBytes),
      unpaidWork: {
        perResource: part(limits.unpaidWork.perResource),
        perNetwork: part(limits.unpaidWork.perNetwork),
        all: part(limits.unpaidWork.all),
        windowMs: limits.unpaidWork.windowMs,
      },
      rate: limits.rate && { perSecond: part(limits.rate.perSecond), burst: part(limits.rate.burst) },
    },
    protocols: { ...protocols, acp: acp.enabled ? { ...acp, maxInFlight: part(acp.maxInFlight) } : acp },
    x402: x402 && { ...x402, processes },
  };
}

/**
 * How many processes serve agents. `cpus`: what `auto` means, and no more than every bound can be
 * divided by.
 * @throws ConfigError for a bound of which a process would get nothing
 */
export function processesOf(
  config: Pick<GatewayConfig, 'server' | 'limits' | 'protocols'>,
  cpus: () => number,
): number {
  const { workers } = config.server;
  if (workers === 'auto') return Math.max(1, Math.min(MOST_WORKERS, cpus(), ...Object.values(dividedBounds(config))));
  checkShares(config, workers);
  return workers;
}

/** @throws ConfigError for a bound of which one of so many processes would get nothing */
export function checkShares(config: Pick<GatewayConfig, 'limits' | 'protocols'>, processes: number): void {
  const problems = new ProblemList();
  for (const [path, bound] of Object.entries(dividedBounds(config)))
    if (bound < processes) problems.add(path, `must be at least ${processes}, of which each worker gets its part`);
  problems.throwIfAny();
}
