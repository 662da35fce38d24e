/**
 * `acg serve`: reads the configuration, opens the gateway, runs until a signal, drains and closes.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Command } from 'commander';
import { drainLengthOf, openHooks, stepsOfDrain } from '../app/open-pod-hooks.ts';
import { openAppProbes } from '../app/open-routes.ts';
import { openReloader, type ReloaderParts } from '../app/reload.ts';
import { warningsOf } from '../app/route-warnings.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import type { ConfigSource } from '../config/load.ts';
import { adaptersSummary, storeLossSummary } from '../config/warnings.ts';
import { createListener } from '../server/listener/listen.ts';
import { type DrainLength, drainSeconds } from '../sidecar/lifecycle.ts';
import type { OpenedPodHooks } from '../sidecar/pod-hooks.ts';
import { createLog, type Log, MaskedSecrets, refusalLog } from '../telemetry/log/log.ts';
import { collectorFrom } from '../telemetry/traces/tracing.ts';
import { checkedDrain, checkedStart, type ProcessSettings } from './checked-start.ts';
import { closed, listenAt, type Opened, type Openers, openAgents } from './open-agents.ts';
import { CONFIG_OPTION, defineCommand, signalled } from './program.ts';

/** The parts that a gateway is opened from. */
interface Start extends ReturnType<typeof configured> {
  readonly secrets: MaskedSecrets;
  readonly hangUp: HangUp;
}

/** SIGHUP, which asks for a reload once a reloader is there. */
interface HangUp {
  reloads(reload: () => void): void;
}

export function serveCommand(): Command {
  const about = 'Runs the gateway until SIGTERM or SIGINT; its log goes to stdout.';
  return defineCommand('serve', about, 'acg serve --config gateway.yaml')
    .option(...CONFIG_OPTION)
    .action((args) => serve(args));
}

/**
 * Runs the gateway until SIGTERM or SIGINT. A second signal ends it at once.
 * @param openers Open store and rail; a test build that must fail visibly brings its own.
 */
export async function serve(args: { readonly config?: string }, openers?: Openers): Promise<void> {
  const found = configured(args);
  const { config } = found.loaded;
  const secrets = new MaskedSecrets([...config.secrets, ...(collectorFrom(process.env)?.secrets ?? [])]);
  const log = createLog(found.settings.logLevel, secrets);
  for (const warning of warningsOf(config)) log.warn(warning);
  const opened: Opened = [];
  let hooks: OpenedPodHooks;
  try {
    hooks = await open({ ...found, secrets, hangUp: stayOnHangUp(log) }, log, opened, openers);
  } catch (error) {
    await closed(opened, log);
    notStarted(log, error);
    throw error;
  }
  try {
    await Promise.race([signalled(), hooks.failed]);
    hooks.stop();
    await hooks.drain();
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
    // `createGateway` compiles the catalogue.
    return { source, ...checkedStart(source, () => undefined) };
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

/** Opens everything, notes the closers, and resolves once both listeners listen. */
async function open(start: Start, log: Log, opened: Opened, openers?: Openers): Promise<OpenedPodHooks> {
  const { loaded, settings, drain, appProbes } = start;
  const { config } = loaded;
  // Hooks and signals start the same drain; both need the gateway, and the gateway shows the hooks.
  const podHooks = { key: settings.hookKey, drain: () => hooks.drain(), release: () => hooks.release() };
  const { gateway, agents, storeName, ...at } = await openAgents({ config, appProbes }, podHooks, log, opened, openers);
  const management = createListener({ app: gateway.management, onRefused: refusalLog(log) });
  const { drainSeconds: propagation } = settings;
  const hooks = openHooks({
    ...{ config, gateway, log, ...graceOf(settings, drain) },
    drainSteps: () => stepsOfDrain(drainLengthOf(gateway.config(), propagation), gateway, agents, log),
    listenAgain: at.listenAgain,
  });
  opened.push(
    () => management.destroy(),
    () => hooks.stop(),
  );
  const agentsAt = await at.listen();
  const managementAt = await listenAt(management, 'management', config.management);
  const facts = {
    agents: agentsAt.port,
    management: managementAt.port,
    mode: config.x402?.mode,
    fronts: adaptersSummary(config),
    lostPayments: storeLossSummary(config),
    drainSeconds: drainSeconds(drain),
    store: storeName,
  };
  log.info(facts, 'listening');
  watchConfig(start, log, opened, {
    metrics: gateway.metrics,
    check(next) {
      checkedDrain(next, settings);
      openAppProbes(process.env, next);
    },
    use(next) {
      gateway.reload(next);
      at.follow(next);
    },
  });
  collectStart();
  return hooks;
}

/** The times that the pod leaves to the hooks, and how the backend's container ends. */
function graceOf({ merchantGraceSeconds, drainBudgetSeconds, backendPreStop }: ProcessSettings, length: DrainLength) {
  return {
    backendPreStop,
    merchantGraceMs: merchantGraceSeconds * 1_000,
    podGraceMs: (merchantGraceSeconds + (drainBudgetSeconds ?? drainSeconds(length))) * 1_000,
    endsWithinMs: drainBudgetSeconds === undefined ? undefined : (merchantGraceSeconds + drainBudgetSeconds) * 1_000,
  };
}

/** Loads the configuration again when its files change, and on SIGHUP. */
function watchConfig(
  { source, loaded, secrets, hangUp }: Start,
  log: Log,
  opened: Opened,
  parts: Pick<ReloaderParts, 'metrics' | 'check' | 'use'>,
): void {
  const mask = (next: GatewayConfig): void => secrets.add(next.secrets);
  const reloader = openReloader({ source, loaded, log, mask, ...parts });
  opened.push(() => reloader.close());
  hangUp.reloads(() => {
    if (reloader.reload() === 'unchanged') log.info('config unchanged');
  });
}

/**
 * SIGHUP asks for the configuration to be read again; the system's default would end running calls
 * without a drain. From a terminal SIGHUP means that the terminal is gone, and the gateway ends
 * with it.
 */
function stayOnHangUp(log: Log): HangUp {
  let early = false;
  let asked = (): void => {
    early = true;
    log.info('SIGHUP: the configuration is read again once the gateway has started');
  };
  if ([process.stdin, process.stdout, process.stderr].every(({ isTTY }) => !isTTY))
    process.on('SIGHUP', () => {
      asked();
      log.flush();
    });
  return {
    reloads(reload) {
      asked = reload;
      // The files may have changed after this start has read them.
      if (early) reload();
    },
  };
}

/**
 * One full collection: the heap of a start is a third larger than what a gateway keeps, and V8
 * shrinks it only after minutes under load. Takes some 30 ms, so it runs before the first call.
 */
export function collectStart(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  if (typeof collect === 'function') collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
