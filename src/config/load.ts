/** Loads the configuration: read, expand, validate, derive, before anything starts. */

import { dirname } from 'node:path';
import { ConfigError, memberPath, ProblemList } from '../problems/problem.ts';
import { deriveConfig } from './derive.ts';
import type { GatewayConfig } from './document/config.ts';
import type { ConfigDocument } from './document/document.ts';
import { isMapping, type Step, schemaAt } from './document/member.ts';
import {
  configPath,
  type Environment,
  MAX_CONFIG_DEPTH,
  placed,
  type ReadDocument,
  readBoundedFile,
  readConfigFile,
  readConfigText,
} from './document/parse.ts';
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
 * Opens nothing but the file, and the secrets and certificates that it or a `_FILE` variable names.
 * @throws ConfigError with every problem
 */
export function loadConfig(source: ConfigSource): GatewayConfig {
  return loadDocument(source).config;
}

/** Loads a configuration and its document, to compare a later one with. @throws ConfigError */
export function loadDocument({ path, env }: ConfigSource): LoadedConfig {
  const file = configPath(path, env);
  return read(readConfigText(readConfigFile(file), file), env);
}

/** @throws ConfigError with every problem */
export function parseConfig(text: string, env: Environment): GatewayConfig {
  return read(readConfigText(text), env).config;
}

/**
 * Runs checks of a configuration that was loaded; a problem gets its place in the file.
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

/** Names the source of each refused value that is not in the file. */
function withOrigins({ problems }: ConfigError, origins: Origins): ConfigError {
  return new ConfigError(
    problems.map((problem) => {
      const origin = origins.get(problem.path);
      if (origin === undefined || problem.message.includes(origin)) return problem;
      return { ...problem, message: `${problem.message}; the value comes from ${origin}` };
    }),
  );
}

/** Largest mounted secret, bytes. */
const MAX_SECRET_BYTES = 65_536;
/** Member names that reach a prototype in a careless copy. */
const FORBIDDEN_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

interface Override {
  readonly name: string;
  readonly path: readonly [string, ...string[]];
  /** The section that the document must have: a token alone does not switch an adapter on. */
  readonly needs?: readonly string[];
  /** The section that the override removes: one store, not two. */
  readonly drops?: readonly string[];
}

/** Variables that take the place of a key without a placeholder. */
export const OVERRIDES: readonly Override[] = [
  { name: 'ADMIN_TOKEN', path: ['server', 'adminToken'] },
  { name: 'ACP_TOKEN', path: ['protocols', 'acp', 'auth', 'token'], needs: ['protocols', 'acp'] },
  { name: 'MERCHANT_BASE_URL', path: ['backend', 'baseUrl'] },
  { name: 'REDIS_URL', path: ['storage', 'redis', 'url'], drops: ['storage', 'sqlite'] },
];

interface Chosen {
  readonly override: Override;
  readonly text: string;
  readonly origin: string;
}

/** Sources of values that are not in the file, by their paths: a variable, a mounted file. */
type Origins = ReadonlyMap<string, string>;

/** The overrides that the environment sets; empty variables count as unset. */
interface EnvironmentOverrides {
  readonly origins: Origins;
  apply(document: unknown): unknown;
}

export function environmentOverrides(document: unknown, env: Environment, problems: ProblemList): EnvironmentOverrides {
  const chosen: Chosen[] = [];
  for (const override of OVERRIDES) {
    if (override.needs !== undefined && !has(document, override.needs)) continue;
    const found = environmentText(override.name, env);
    if (found?.kind === 'fault') problems.add(pathOf(override.path), found.message);
    else if (found !== undefined && found.text !== '') chosen.push({ override, ...found });
  }
  return {
    origins: new Map(chosen.map(({ override, origin }) => [pathOf(override.path), origin])),
    apply: (expanded) =>
      chosen.reduce((value, { override: { path, drops }, text }) => {
        const kept = drops === undefined ? value : replaced(value, drops, undefined);
        return replaced(kept, path, text);
      }, expanded),
  };
}

function has(value: unknown, path: readonly string[]): boolean {
  return path.reduce<unknown>((inner, name) => (isMapping(inner) ? inner[name] : undefined), value) !== undefined;
}

/** A copy with one value set; a section of the wrong type is left for validation to refuse. */
function replaced(value: unknown, [name, ...rest]: readonly string[], text: string | undefined): unknown {
  if (name === undefined) return text;
  if (value !== undefined && value !== null && !isMapping(value)) return value;
  const section = isMapping(value) ? value : {};
  return { ...section, [name]: replaced(section[name], rest, text) };
}

/** The document with every placeholder replaced. Paths as in ConfigProblem. */
interface Expansion {
  readonly value: unknown;
  /** Values that came whole out of a mounted file, where keys belong. */
  readonly fromFile: ReadonlySet<string>;
  readonly origins: Origins;
  /** Values with a placeholder whose variable or file is not there. */
  readonly unset: ReadonlySet<string>;
}

/**
 * Replaces `${VAR}`, `${VAR:-default}` and `${file:/path}` in string values, never in keys. A
 * placeholder that is the whole value becomes a number or a boolean where the schema wants one.
 * Inserted text is not expanded again, so a secret may contain `${`. `settled` paths are skipped:
 * the environment overrides them.
 */
export function expand(document: unknown, env: Environment, settled: Origins, problems: ProblemList): Expansion {
  const fromFile = new Set<string>();
  const origins = new Map<string, string>();
  const unset = new Set<string>();
  /** Steps from the document to the value that is walked. */
  const steps: Step[] = [];
  const insert = (source: string): unknown => {
    const path = pathOf(steps);
    if (settled.has(path)) return source;
    const parts = source.split(PLACEHOLDER).filter((part) => part !== '');
    const found = parts.map((part) => (part.includes('${') ? resolve(part, env) : { ...PLAIN, text: part }));
    const fault = found.find((one) => one.kind === 'fault');
    if (fault !== undefined) {
      problems.add(path, fault.message);
      if (fault.isUnset) unset.add(path);
      return source;
    }
    const texts = found.filter((one) => one.kind === 'set');
    const origin = [...new Set(texts.map((one) => one.origin))].filter((one) => one !== '').join(' and ');
    origins.set(path, origin);
    const text = texts.map((one) => one.text).join('');
    if (texts.length > 1) return text;
    if (texts[0]?.fromFile === true) fromFile.add(path);
    const typed = typedText(text, steps);
    if (typed.wanted === undefined) return typed.value;
    problems.add(path, `must be ${typed.wanted} and nothing else, which ${origin} is not`);
    return text;
  };
  const walk = (value: unknown): unknown => {
    if (steps.length > MAX_CONFIG_DEPTH) {
      problems.add(pathOf(steps), `must not be nested deeper than ${MAX_CONFIG_DEPTH} levels`);
      return null;
    }
    if (typeof value === 'string') return value.includes('${') ? insert(value) : value;
    if (value === null || typeof value !== 'object') return value;
    // Copied only if a member was replaced: most of a document has no placeholder.
    let copy: Record<string, unknown> | unknown[] | undefined;
    for (const [name, member] of Object.entries(value)) {
      const key = Array.isArray(value) ? Number(name) : name;
      steps.push(key);
      if (FORBIDDEN_NAMES.has(name)) problems.add(pathOf(steps), 'is a name that no key may have');
      const expanded = FORBIDDEN_NAMES.has(name) ? member : walk(member);
      steps.pop();
      if (expanded === member) continue;
      copy ??= Array.isArray(value) ? [...(value as readonly unknown[])] : { ...value };
      (copy as Record<string | number, unknown>)[key] = expanded;
    }
    return copy ?? value;
  };
  return { value: walk(document), fromFile, origins, unset };
}

function pathOf(steps: readonly Step[]): string {
  return steps.reduce<string>(memberPath, '');
}

const INTEGER = /^-?(?:0|[1-9]\d*)$/;

/**
 * Digits and `true` or `false` become a number or a boolean where the schema wants one; `wanted`:
 * the form that the text lacks for that. Other texts stay as they are.
 */
function typedText(text: string, steps: readonly Step[]): { readonly value: unknown; readonly wanted?: string } {
  const node = schemaAt(steps);
  const types = [node?.type ?? typeof node?.const].flat();
  const { description = '', default: usual } = node ?? {};
  const wanted = (form: string) => ({
    value: text,
    wanted: ['', form].includes(description) ? form : `${description}: ${form}`,
  });
  if (types.includes('integer') || types.includes('number')) {
    if (INTEGER.test(text) && Number.isSafeInteger(Number(text))) return { value: Number(text) };
    return wanted(`a whole number${typeof usual === 'number' ? ` such as ${usual}` : ''}`);
  }
  if (!types.includes('boolean')) return { value: text };
  return text === 'true' || text === 'false' ? { value: text === 'true' } : wanted('true or false');
}

/** The text for a placeholder, or the reason why there is none. */
type Found =
  | { readonly kind: 'set'; readonly text: string; readonly fromFile: boolean; readonly origin: string }
  | { readonly kind: 'fault'; readonly message: string; readonly isUnset: boolean };

const PLACEHOLDER = /(\$\{[^}]*\})/;
const PLAIN = { kind: 'set', fromFile: false, origin: '' } as const;

function resolve(placeholder: string, env: Environment): Found {
  const fault = (message: string, isUnset = false) => ({ kind: 'fault', message, isUnset }) as const;
  if (!placeholder.endsWith('}')) return fault('has a placeholder without closing brace');
  const body = placeholder.slice(2, -1);
  if (body.includes('${')) return fault('has a placeholder inside a placeholder, which is not supported');
  const [, file] = /^file:(.*)$/s.exec(body) ?? [];
  if (file?.startsWith('/')) return readSecretFile(file);
  if (file !== undefined)
    return fault('has a file: placeholder whose path is not absolute; write $' + '{file:/path/of/the/file}');
  const [, name = '', usual] = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(body) ?? [];
  if (name === '') return fault(`has a malformed placeholder; use \${VAR}, \${VAR:-default} or \${file:/path}`);
  const found = environmentText(name, env);
  if (found?.kind === 'fault' || (found !== undefined && (found.text !== '' || usual === undefined))) return found;
  if (usual !== undefined) return { ...PLAIN, text: usual, origin: `the default of ${name}` };
  return fault(`needs the environment variable ${name} (or ${name}_FILE), which is not set`, true);
}

/** A variable, or the file that the same name with `_FILE` names; both at once is a mistake. */
function environmentText(name: string, env: Environment): Found | undefined {
  const direct = env[name];
  const file = env[`${name}_FILE`];
  if (file && direct)
    return { kind: 'fault', message: `${name} and ${name}_FILE are both set; keep one`, isUnset: false };
  if (file) return readSecretFile(file);
  return direct === undefined ? undefined : { ...PLAIN, text: direct, origin: `the environment variable ${name}` };
}

class SecretFileError extends Error {}

/** A mounted secret without its trailing newline. Messages name the file, never its content. */
function readSecretFile(path: string): Found {
  try {
    const text = readBoundedFile(path, MAX_SECRET_BYTES, (message) => new SecretFileError(`${path} ${message}`));
    return { kind: 'set', text: text.replace(/\r?\n$/, ''), fromFile: true, origin: `the file ${path}` };
  } catch (error) {
    if (!(error instanceof SecretFileError)) throw error;
    return { kind: 'fault', message: `needs a mounted file: ${error.message}`, isUnset: true };
  }
}
