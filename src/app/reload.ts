/**
 * Loads the configuration again while the gateway runs: on a change of its files, or when asked. A
 * configuration that is refused changes nothing.
 */

import type { GatewayConfig } from '../config/document/config.ts';
import { type ConfigSource, checkLoaded, type LoadedConfig, loadDocument } from '../config/load.ts';
import { changesBetween, ENTRIES, readSources, watchDirectories } from '../config/reload.ts';
import { ConfigError, type ConfigProblem } from '../problems/problem.ts';
import type { Log } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { warningsOf } from './route-warnings.ts';

/** Changed keys that a log line names at most. */
const NAMED = 20;
const NEEDS_RESTART = 'needs a restart of the gateway; until then the configuration that is in use stays as a whole';
const ENTRIES_NEED_RESTART = `${NEEDS_RESTART}; to remove an entry, set its offered: false, which needs no restart, and take it out a day later`;

/** How an attempt to load ended. `unchanged`: the files match the configuration in use. */
type Reloaded = 'reloaded' | 'rejected' | 'unchanged';

/** Loads the configuration again. */
interface Reloader {
  /** Looks at the files now, whether they seem changed or not. Never throws. */
  reload(): Reloaded;
  close(): void;
}

export interface ReloaderParts {
  readonly source: ConfigSource;
  /** The configuration in use. */
  readonly loaded: LoadedConfig;
  /** Hides the secrets of a configuration in the log, also of one that is refused afterwards. */
  readonly mask: (config: GatewayConfig) => void;
  /** Checks what only a running process knows. @throws ConfigError */
  readonly check: (config: GatewayConfig) => void;
  /** Puts a configuration into use. @throws Error; the one before stays in use then */
  readonly use: (config: GatewayConfig) => void;
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
  readonly metrics: Pick<Metrics, 'counter' | 'gauge'>;
  readonly pollMs?: number;
}

/** Watches the files of the configuration until it is closed. */
export function openReloader(parts: ReloaderParts): Reloader {
  const { source, log, metrics } = parts;
  let { document, config } = parts.loaded;
  // The files may have changed since they were loaded: the first look loads them again.
  let seen: string | undefined;
  let outdated = false;
  const counts: Record<Exclude<Reloaded, 'unchanged'>, number> = { reloaded: 0, rejected: 0 };
  metrics.counter({
    name: 'acg_config_reloads_total',
    help: 'Changed configurations since the start: reloaded, in use; rejected, the one before stays in use and the log says why.',
    label: 'result',
    read: () => counts,
  });
  metrics.gauge({
    name: 'acg_config_outdated',
    help: '1 while the files of the configuration are not what is in use: they were rejected. The log line "config rejected" says why.',
    read: () => (outdated ? 1 : 0),
  });

  const attempt = (): Reloaded => {
    const next = loadDocument(source);
    parts.mask(next.config);
    const { changed, restart } = changesBetween(document, next.document);
    if (changed.length === 0) return 'unchanged';
    checkLoaded(source, () => {
      if (restart.length > 0) throw new ConfigError(restart.map(problemOf));
      parts.check(next.config);
    });
    parts.use(next.config);
    const [before, after] = [config.blockedPayers.size, next.config.blockedPayers.size];
    ({ document, config } = next);
    const named = changed.slice(0, NAMED);
    log.info(
      { changed: named, ...(changed.length > NAMED ? { more: changed.length - NAMED } : {}) },
      'config reloaded',
    );
    // A file that was being written looks like a shorter list.
    if (after < before) log.warn({ before, after }, 'fewer payers are blocked');
    for (const warning of warningsOf(next.config)) log.warn(warning);
    return 'reloaded';
  };
  const reload = (): Reloaded => {
    const sources = readSources(source);
    // Set before loading: the next look sees changes that come meanwhile.
    seen = sources.digest;
    watch.follow(sources.files);
    let result: Reloaded;
    try {
      result = attempt();
    } catch (error) {
      log.error(causeOf(error), 'config rejected');
      result = 'rejected';
    }
    if (outdated && result === 'unchanged') log.info('config restored: the files say again what is in use');
    outdated = result === 'rejected';
    if (result !== 'unchanged') counts[result] += 1;
    return result;
  };
  const watch = watchDirectories(() => {
    if (readSources(source).digest !== seen) reload();
  }, parts.pollMs);
  watch.follow(readSources(source).files);
  return { reload, close: () => watch.close() };
}

function problemOf(path: string): ConfigProblem {
  return { path, message: path === ENTRIES ? ENTRIES_NEED_RESTART : NEEDS_RESTART };
}

/** The problems by path, without configured values, or the error that kept it out of use. */
function causeOf(error: unknown): { readonly problems: readonly ConfigProblem[] } | { readonly err: unknown } {
  return error instanceof ConfigError ? { problems: error.problems } : { err: error };
}
