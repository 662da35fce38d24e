/** Loads the configuration: read, expand, validate, derive, before anything starts. */

import { ProblemList } from '../problems/problem.ts';
import { deriveConfig } from './derive.ts';
import type { GatewayConfig } from './document/config.ts';
import type { ConfigDocument } from './document/document.ts';
import { configPath, type Environment, parseConfigText, readConfigFile } from './document/read.ts';
import { environmentOverrides, expand } from './expand.ts';
import { withBothLines } from './two-lines.ts';
import { validateDocument } from './validate.ts';

/** `path`: the `--config` argument; without it AGENT_COMMERCE_CONFIG, else `config.yaml`. */
export interface ConfigSource {
  readonly path?: string | undefined;
  readonly env: Environment;
}

/** A configuration, and the document that it was derived from, with its secrets in place. */
export interface LoadedConfig {
  readonly config: GatewayConfig;
  readonly document: ConfigDocument;
  /** Paths of the document whose value came out of a mounted file. */
  readonly fromFile: ReadonlySet<string>;
}

/**
 * Opens nothing but the file itself and the mounted secrets that it names.
 * @throws ConfigError with every problem
 */
export function loadConfig(source: ConfigSource): GatewayConfig {
  return loadDocument(source).config;
}

/** The same with the document, which a later one is compared with. @throws ConfigError */
export function loadDocument({ path, env }: ConfigSource): LoadedConfig {
  return read(readConfigFile(configPath(path, env)), env);
}

/** What was loaded elsewhere from the same document. @throws ConfigError */
export function configOf({ document, fromFile }: Pick<LoadedConfig, 'document' | 'fromFile'>): GatewayConfig {
  return deriveConfig(document, fromFile, new ProblemList());
}

/** @throws ConfigError with every problem */
export function parseConfig(text: string, env: Environment): GatewayConfig {
  return read(text, env).config;
}

function read(text: string, env: Environment): LoadedConfig {
  const raw = parseConfigText(text);
  const problems = new ProblemList();
  const overrides = environmentOverrides(raw, env, problems);
  const expansion = expand(raw, env, overrides.paths, problems);
  const document = withBothLines(overrides.apply(expansion.value), problems);
  // A refused document is still derived: `deriveConfig` skips the sections that the schema refused.
  validateDocument(document, problems);
  if (!problems.sound('')) problems.throwIfAny();
  const config = deriveConfig(document as ConfigDocument, expansion.fromFile, problems);
  return { config, document: document as ConfigDocument, fromFile: expansion.fromFile };
}
