/** `acg serve`: opens store, rail and listeners, runs until a signal, drains and closes. */

import { openAppProbes } from '../app/app-probe-guard.ts';
import { drainLengthOf } from '../app/drain-length.ts';
import { openHooks, stepsOfDrain } from '../app/open-pod-hooks.ts';
import { openReloader, type ReloaderParts } from '../app/reload.ts';
import { routeWarnings } from '../app/route-warnings.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { type ConfigSource, loadDocument } from '../config/load.ts';
import { secretsOf } from '../config/secrets.ts';
import { processesOf } from '../config/share-of.ts';
import { adaptersSummary, storeLossSummary } from '../config/summary.ts';
import { configWarnings } from '../config/warnings.ts';
import { createRail } from '../payments/x402/create-rail.ts';
import { createListener } from '../server/listener/listen.ts';
import { type DrainLength, drainSeconds } from '../sidecar/drain-length.ts';
import type { OpenedPodHooks } from '../sidecar/pod-hooks.ts';
import { openStore } from '../store/open.ts';
import { createLog, type Log, MaskedSecrets, refusalLog } from '../telemetry/log/log.ts';
import { collectorFrom } from '../telemetry/traces/collector.ts';
import { isWorker } from '../workers/cluster.ts';
import { wholeCpus } from '../workers/cpu-quota.ts';
import { collectStart } from './collect-start.ts';
import { closed, listenAt, type Opened, type Openers, openAgents } from './open-agents.ts';
import { checkedDrain, type ProcessSettings, processSettings } from './process-settings.ts';

/**
 * Runs the gateway until SIGTERM or SIGINT. A second signal ends it at once.
 * @param openers Open store and rail; a test build that must fail visibly brings its own.
 */
export async function serve(
  args: { readonly config?: string },
  openers: Openers = { openStore, createRail },
): Promise<void> {
  if (isWorker()) return (await import('./serve-worker.ts')).serveAsWorker(openers);
  const found = configured(args);
  const { config } = found.loaded;
  const secrets = new MaskedSecrets([...secretsOf(config), ...(collectorFrom(process.env)?.secrets ?? [])]);
  const log = createLog(found.settings.logLevel, secrets);
  for (const warning of warningsOf(config)) log.warn(warning);
  const opened: Opened = [];
  const start: Start = { ...found, secrets, hangUp: stayOnHangUp(log) };
  let serving: Serving;
  try {
    serving =
      start.processes === 1
        ? await open(start, log, opened, openers)
        : await (await import('./open-workers.ts')).openWorkers(start, log, opened);
  } catch (error) {
    await closed(opened, log);
    notStarted(log, error);
    throw error;
  }
  try {
    await Promise.race([signalled(), serving.failed]);
    serving.stop();
    for (const signal of ['SIGTERM', 'SIGINT'] as const)
      process.once(signal, () => {
        serving.force?.();
        process.exit(1);
      });
    await serving.drain();
  } catch (error) {
    log.fatal({ err: error }, 'the gateway cannot go on');
    throw error;
  } finally {
    await closed(opened, log);
    log.info('stopped');
    log.flush();
  }
}

/** Configuration and process settings. @throws ConfigError, which is logged as well */
function configured(args: { readonly config?: string }) {
  try {
    const source: ConfigSource = { path: args.config, env: process.env };
    const loaded = loadDocument(source);
    const settings = processSettings(process.env);
    checkedDrain(loaded.config, settings);
    const processes = processesOf(loaded.config, wholeCpus);
    return { source, loaded, settings, processes, appProbes: openAppProbes(process.env, loaded.config) };
  } catch (error) {
    notStarted(createLog('info', []), error);
    throw error;
  }
}

/** The last log line of a failed start is its cause: errors of closing come before it. */
function notStarted(log: Log, error: unknown): void {
  log.fatal({ err: error }, 'not started');
  log.flush();
}

/** A gateway that serves. */
export interface Serving extends Pick<OpenedPodHooks, 'drain' | 'stop' | 'failed'> {
  /** Ends at once what belongs to it beside this process. */
  readonly force?: () => void;
}

/** What a gateway is opened with. */
export interface Start extends ReturnType<typeof configured> {
  readonly secrets: MaskedSecrets;
  readonly hangUp: HangUp;
}

/** What an operator should know about a configuration that is in use. */
function warningsOf(config: GatewayConfig): readonly string[] {
  return [...configWarnings(config), ...routeWarnings(config)];
}

/** Opens everything, notes the closers, and resolves to the hooks once both listeners listen. */
async function open(
  { source, loaded, settings, appProbes, secrets, hangUp }: Start,
  log: Log,
  opened: Opened,
  openers: Openers,
): Promise<OpenedPodHooks> {
  const { config } = loaded;
  // Hooks and signals start the same drain; both need the gateway, and the gateway shows the hooks.
  const podHooks = { drain: () => hooks.drain(), release: () => hooks.release() };
  const { gateway, agents, storeName, ...at } = await openAgents({ config, appProbes }, podHooks, log, opened, openers);
  const management = createListener({ app: gateway.management, onRefused: refusalLog(log) });
  const { drainSeconds: propagation } = settings;
  const hooks = openHooks({
    ...{ config, gateway, log, ...graceOf(settings, drainLengthOf(config, propagation)) },
    drainSteps: () => stepsOfDrain(drainLengthOf(gateway.config(), propagation), gateway, agents, log),
    listenAgain: at.listenAgain,
  });
  opened.push(
    () => management.destroy(),
    () => hooks.stop(),
  );
  const agentsAt = await at.listen();
  const managementAt = await listenAt(management, 'management', config.management);
  const ports = { agents: agentsAt.port, management: managementAt.port };
  const facts = { ...ports, ...startFacts(config, settings), store: storeName };
  log.info(facts, 'listening');
  watchConfig({ source, loaded, secrets, hangUp }, log, opened, {
    metrics: gateway.metrics,
    check(next) {
      checkedDrain(next, settings);
      openAppProbes(process.env, next);
    },
    use({ config: next }) {
      gateway.reload(next);
      at.follow(next);
    },
  });
  collectStart();
  return hooks;
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

/** What SIGHUP asks for, once there is something that can do it. */
interface HangUp {
  reloads(reload: () => Promise<void>): void;
}

/**
 * SIGHUP asks for the configuration to be read again; the system's default would end running calls
 * without a drain. From a terminal SIGHUP means that the terminal is gone, and the gateway ends
 * with it.
 */
function stayOnHangUp(log: Log): HangUp {
  let asked = async (): Promise<void> => log.warn('SIGHUP: the gateway is still starting, and reads its configuration');
  if ([process.stdin, process.stdout, process.stderr].every(({ isTTY }) => !isTTY))
    process.on('SIGHUP', () => void asked().finally(() => log.flush()));
  return {
    reloads(reload) {
      asked = reload;
    },
  };
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
