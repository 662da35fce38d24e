/** Everything that a start reads before it opens anything: checked together, for one report. */

import { openAppProbes } from '../app/app-probe-guard.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { type ConfigSource, checkLoaded, loadDocument } from '../config/load.ts';
import { checkAll, ProblemList } from '../problems/problem.ts';
import { readAppProbes } from '../sidecar/app-probe-settings.ts';
import { checkedDrain, processSettings } from './process-settings.ts';

/**
 * Reads the configuration and the settings of the process.
 * @param also a further check of the configuration, named in the same report
 * @throws ConfigError with every problem
 */
export function checkedStart<Also>(source: ConfigSource, also: (config: GatewayConfig) => Also) {
  const { env } = source;
  const [loaded, settings] = checkAll(
    () => loadDocument(source),
    () => processSettings(env),
    () => readProbes(env),
  );
  const { config } = loaded;
  const [drain, appProbes, found] = checkLoaded(source, () =>
    checkAll(
      () => checkedDrain(config, settings),
      () => openAppProbes(env, config),
      () => also(config),
    ),
  );
  return { loaded, settings, drain, appProbes, also: found };
}

/** What is wrong with the merchant's probes whatever is sold. @throws ConfigError */
function readProbes(env: ConfigSource['env']): void {
  const problems = new ProblemList();
  readAppProbes(env, problems);
  problems.throwIfAny();
}
