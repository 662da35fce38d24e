/**
 * Keeps what is sold from being a probe of the merchant: whatever can reach the management port
 * would get it for nothing.
 */

import { createPathGuard } from '../passthrough/path-guard.ts';
import { ProblemList } from '../problems/problem.ts';
import { APP_PROBES, type AppProbeSettings, appProbeVariable, readAppProbes } from '../sidecar/app-probe-settings.ts';
import { operationsOf, type RouteSettings } from './open-routes.ts';

/** What a pod without a wish of its own should do. */
const INSTEAD = 'give the merchant a path for its probe that is not sold, or a probe of another kind';

/**
 * Whether a path of the merchant, in whatever spelling, may be one that is paid for. On any port:
 * the same routes are often served on a second one, with TLS.
 */
export function soldTargets(config: RouteSettings): (target: string) => boolean {
  const guarded = operationsOf(config).filter((operation) => operation.guarded);
  const judge = createPathGuard(guarded);
  return (target) => guarded.length > 0 && judge(target).kind !== 'pass';
}

/**
 * The merchant's probes of the environment. @throws ConfigError that names the variable of each one
 * that cannot be read, is the path of something sold, or names a port of the gateway
 */
export function openAppProbes(
  env: Readonly<Record<string, string | undefined>>,
  config: RouteSettings & GatewayPorts,
): AppProbeSettings {
  const problems = new ProblemList();
  const probes = readAppProbes(env, problems);
  check(probes, config, problems);
  problems.throwIfAny();
  return probes;
}

function check(probes: AppProbeSettings, config: RouteSettings & GatewayPorts, problems: ProblemList): void {
  const isSold = soldTargets(config);
  const own = [config.server.port, config.management.port];
  for (const kind of APP_PROBES) {
    const probe = probes[kind];
    if (probe === undefined) continue;
    const name = appProbeVariable(kind);
    if (own.includes(probe.port)) problems.add(name, "names a port of the gateway; it must be one of the merchant's");
    else if (isSold(probe.target))
      problems.add(name, `is the path of something that is sold, and would give it for nothing; ${INSTEAD}`);
  }
}

/** The gateway's own listeners. */
interface GatewayPorts {
  readonly server: { readonly port: number };
  readonly management: { readonly port: number };
}
