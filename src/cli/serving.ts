/** What a gateway of one process and one of several have in common while they serve. */

import { drainLengthOf } from '../app/drain-length.ts';
import { openReloader, type ReloaderParts } from '../app/reload.ts';
import { routeWarnings } from '../app/route-warnings.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import type { ConfigSource, LoadedConfig } from '../config/load.ts';
import { secretsOf } from '../config/secrets.ts';
import { adaptersSummary, storeLossSummary } from '../config/summary.ts';
import { configWarnings } from '../config/warnings.ts';
import type { AppProbeSettings } from '../sidecar/app-probe-settings.ts';
import { type DrainLength, drainSeconds } from '../sidecar/drain-length.ts';
import type { OpenedPodHooks } from '../sidecar/pod-hooks.ts';
import type { Log, MaskedSecrets } from '../telemetry/log/log.ts';
import type { Opened } from './closing.ts';
import type { ProcessSettings } from './process-settings.ts';

/** A gateway that serves. */
export interface Serving extends Pick<OpenedPodHooks, 'drain' | 'stop' | 'failed'> {
  /** Ends at once what belongs to it beside this process. */
  readonly force?: () => void;
}

/** What a gateway is opened with. */
export interface Start {
  readonly source: ConfigSource;
  readonly loaded: LoadedConfig;
  readonly settings: ProcessSettings;
  /** That serve agents. */
  readonly processes: number;
  readonly appProbes: AppProbeSettings;
  readonly secrets: MaskedSecrets;
  readonly hangUp: HangUp;
}

/** What SIGHUP asks for, once there is something that can do it. */
export interface HangUp {
  reloads(reload: () => Promise<void>): void;
}

/** What an operator should know about a configuration that is in use. */
export function warningsOf(config: GatewayConfig): readonly string[] {
  return [...configWarnings(config), ...routeWarnings(config)];
}

/** What the pod leaves to the hooks, and how the backend's container ends. */
export function graceOf(
  { merchantGraceSeconds, drainBudgetSeconds, backendPreStop }: ProcessSettings,
  length: DrainLength,
) {
  return {
    backendPreStop,
    merchantGraceMs: merchantGraceSeconds * 1_000,
    podGraceMs: (merchantGraceSeconds + (drainBudgetSeconds ?? drainSeconds(length))) * 1_000,
    endsWithinMs: drainBudgetSeconds === undefined ? undefined : (merchantGraceSeconds + drainBudgetSeconds) * 1_000,
  };
}

/** What the line of a start says of a configuration. */
export function startFacts(config: GatewayConfig, { drainSeconds: propagation }: ProcessSettings) {
  return {
    mode: config.x402?.mode,
    fronts: adaptersSummary(config),
    lostPayments: storeLossSummary(config),
    drainSeconds: drainSeconds(drainLengthOf(config, propagation)),
  };
}

/** Loads the configuration again when its files change, and on SIGHUP. */
export function watchConfig(
  { source, loaded, secrets, hangUp }: Pick<Start, 'source' | 'loaded' | 'secrets' | 'hangUp'>,
  log: Log,
  opened: Opened,
  parts: Pick<ReloaderParts, 'metrics' | 'check' | 'use'>,
): void {
  const reloader = openReloader({
    ...{ source, loaded, warningsOf, log, ...parts },
    mask: (next) => secrets.add(secretsOf(next)),
  });
  opened.push(() => reloader.close());
  hangUp.reloads(async () => {
    if ((await reloader.reload()) === 'unchanged') log.info('config unchanged');
  });
}
