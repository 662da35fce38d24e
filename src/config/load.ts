/** Loads the configuration: read, expand, validate, derive, before anything starts. */

import { dirname } from 'node:path';
import { ConfigError, ProblemList } from '../problems/problem.ts';
import { deriveConfig } from './derive.ts';
import type { GatewayConfig } from './document/config.ts';
import type { ConfigDocument } from './document/document.ts';
import { placed, type ReadDocument, readConfigText } from './document/parse.ts';
import { configPath, type Environment, readConfigFile } from './document/read.ts';
import { environmentOverrides, expand, type Origins } from './expand.ts';
import { longForm, withBothLines } from './sections/short-form.ts';
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
  const file = configPath(path, env);
  return read(readConfigText(readConfigFile(file), file), env);
}

/** @throws ConfigError with every problem */
export function parseConfig(text: string, env: Environment): GatewayConfig {
  return read(readConfigText(text), env).config;
}

/**
 * Runs checks of a configuration that was loaded; what they refuse gets its place in the file.
 * @throws ConfigError
 */
export function checkLoaded<Result>({ path, env }: ConfigSource, checks: () => Result): Result {
  return withPlaces(checks, (error) => {
    const file = configPath(path, env);
    try {
      return placed(error, readConfigText(readConfigFile(file), file));
    } catch {
      // The file is gone, or another one by now.
      return error;
    }
  });
}

function read(source: ReadDocument, env: Environment): LoadedConfig {
  const problems = new ProblemList();
  const overrides = environmentOverrides(source.value, env, problems);
  const expansion = expand(source.value, env, overrides.origins, problems);
  const origins: Origins = new Map([...expansion.origins, ...overrides.origins]);
  const document = longForm(withBothLines(overrides.apply(expansion.value), problems), problems);
  const folder = source.file === undefined ? undefined : dirname(source.file);
  return withPlaces(
    () => {
      // A refused document is still derived: `deriveConfig` skips what was refused.
      validateDocument(document, problems);
      if (!problems.sound('')) problems.throwIfAny();
      const config = deriveConfig(document as ConfigDocument, { fromFile: expansion.fromFile, folder }, problems);
      return { config, document: document as ConfigDocument };
    },
    (error) => placed(withOrigins(error, origins), source),
  );
}

function withPlaces<Result>(checks: () => Result, place: (error: ConfigError) => ConfigError): Result {
  try {
    return checks();
  } catch (error) {
    throw error instanceof ConfigError ? place(error) : error;
  }
}

/** Says of a value that is not in the file where it is. */
function withOrigins({ problems }: ConfigError, origins: Origins): ConfigError {
  return new ConfigError(
    problems.map((problem) => {
      const origin = origins.get(problem.path);
      if (origin === undefined || problem.message.includes(origin)) return problem;
      return { ...problem, message: `${problem.message}; the value comes from ${origin}` };
    }),
  );
}
