/** Loads the configuration: read, expand, validate, derive, before anything starts. */

import { ProblemList } from '../problems/problem.ts';
import { deriveConfig } from './derive.ts';
import type { GatewayConfig } from './document/config.ts';
import type { ConfigDocument } from './document/document.ts';
import { configPath, type Environment, parseConfigText, readConfigFile } from './document/read.ts';
import { environmentOverrides, expand } from './expand.ts';
import { validateDocument } from './validate.ts';

/** `path`: the `--config` argument; without it AGENT_COMMERCE_CONFIG, else `config.yaml`. */
interface ConfigSource {
  readonly path?: string | undefined;
  readonly env: Environment;
}

/**
 * Opens nothing but the file itself and the mounted secrets that it names.
 * @throws ConfigError with every problem
 */
export function loadConfig({ path, env }: ConfigSource): GatewayConfig {
  return parseConfig(readConfigFile(configPath(path, env)), env);
}

/** @throws ConfigError with every problem */
export function parseConfig(text: string, env: Environment): GatewayConfig {
  const raw = parseConfigText(text);
  const problems = new ProblemList();
  const overrides = environmentOverrides(raw, env, problems);
  const expansion = expand(raw, env, overrides.paths, problems);
  const document = overrides.apply(expansion.value);
  // A refused document is still derived: `deriveConfig` skips the sections that the schema refused.
  validateDocument(document, problems);
  if (!problems.sound('')) problems.throwIfAny();
  return deriveConfig(document as ConfigDocument, expansion.fromFile, problems);
}
