/**
 * `acg serve`: reads the configuration, opens the gateway in this process or in several, runs until
 * a signal, drains and closes. What only one of these ways needs is loaded for it alone.
 */

import type { Command } from 'commander';
import type { ConfigSource } from '../config/load.ts';
import { secretsOf } from '../config/secrets.ts';
import { createLog, type Log, MaskedSecrets } from '../telemetry/log/log.ts';
import { collectorFrom } from '../telemetry/traces/collector.ts';
import { isWorker } from '../workers/cluster.ts';
import { checkedStart } from './checked-start.ts';
import { closed, type Opened } from './closing.ts';
import type { Openers } from './open-agents.ts';
import { CONFIG_OPTION, defineCommand } from './program.ts';
import { type HangUp, type Serving, type Start, warningsOf } from './serving.ts';

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
  if (isWorker()) return (await import('./serve-worker.ts')).serveAsWorker(openers);
  const found = configured(args);
  const { config } = found.loaded;
  const secrets = new MaskedSecrets([...secretsOf(config), ...(collectorFrom(process.env)?.secrets ?? [])]);
  const log = createLog(found.settings.logLevel, secrets, undefined, found.processes > 1);
  for (const warning of warningsOf(config)) log.warn(warning);
  const opened: Opened = [];
  const start: Start = { ...found, secrets, hangUp: stayOnHangUp(log) };
  let serving: Serving;
  try {
    serving =
      start.processes === 1
        ? await (await import('./serve-alone.ts')).openAlone(start, log, opened, openers)
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
    // Workers that are left finish their calls; where a drain is what failed, there is no other.
    serving.stop();
    await serving.drain().catch(() => undefined);
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
    // What is sold is compiled where it is served.
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

/**
 * SIGHUP asks for the configuration to be read again; the system's default would end running calls
 * without a drain. From a terminal SIGHUP means that the terminal is gone, and the gateway ends
 * with it.
 */
function stayOnHangUp(log: Log): HangUp {
  let early = false;
  let asked = async (): Promise<void> => {
    early = true;
    log.info('SIGHUP: the configuration is read again once the gateway has started');
  };
  if ([process.stdin, process.stdout, process.stderr].every(({ isTTY }) => !isTTY))
    process.on('SIGHUP', () => void asked().finally(() => log.flush()));
  return {
    reloads(reload) {
      asked = reload;
      // The files may have changed after this start has read them.
      if (early) void reload();
    },
  };
}

function signalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
