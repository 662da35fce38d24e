/** Puts environment variables and mounted files into the document, before it is validated. */

import { memberPath, type ProblemList } from '../problems/problem.ts';
import { type Environment, MAX_CONFIG_DEPTH, readBoundedFile } from './document/read.ts';

/** Largest mounted secret, bytes. */
const MAX_SECRET_BYTES = 65_536;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Member names that reach a prototype in a careless copy. */
const FORBIDDEN_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

interface Override {
  readonly name: string;
  readonly path: readonly [string, ...string[]];
  /** Only when the document has this section: a token alone does not switch an adapter on. */
  readonly needs?: readonly string[];
  /** What the override replaces: one store, not two. */
  readonly drops?: readonly [section: string, key: string];
}

const OVERRIDES: readonly Override[] = [
  { name: 'ADMIN_TOKEN', path: ['server', 'adminToken'] },
  { name: 'ACP_TOKEN', path: ['protocols', 'acp', 'auth', 'token'], needs: ['protocols', 'acp'] },
  { name: 'MERCHANT_BASE_URL', path: ['backend', 'baseUrl'] },
  { name: 'REDIS_URL', path: ['storage', 'redis', 'url'], drops: ['storage', 'sqlite'] },
];

interface Chosen {
  readonly override: Override;
  readonly text: string;
}

/** The overrides that the environment sets, with their paths; empty variables count as unset. */
interface EnvironmentOverrides {
  readonly paths: ReadonlySet<string>;
  apply(document: unknown): unknown;
}

export function environmentOverrides(document: unknown, env: Environment, problems: ProblemList): EnvironmentOverrides {
  const chosen: Chosen[] = [];
  for (const override of OVERRIDES) {
    if (override.needs !== undefined && !has(document, override.needs)) continue;
    const found = environmentText(override.name, env);
    if (found.kind === 'fault') problems.add(dotted(override.path), found.message);
    else if (found.kind === 'set' && found.text !== '') chosen.push({ override, text: found.text });
  }
  return {
    paths: new Set(chosen.map(({ override }) => dotted(override.path))),
    apply: (expanded) =>
      chosen.reduce((value, { override, text }) => {
        const kept = override.drops === undefined ? value : without(value, override.drops);
        return replaced(kept, override.path, text);
      }, expanded),
  };
}

function dotted(path: readonly string[]): string {
  return path.reduce((parent, member) => memberPath(parent, member), '');
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function has(value: unknown, path: readonly string[]): boolean {
  return path.reduce<unknown>((inner, name) => (isMapping(inner) ? inner[name] : undefined), value) !== undefined;
}

/** A copy with one value set; a section of the wrong type is left for validation to refuse. */
function replaced(value: unknown, [name, ...rest]: readonly string[], text: string): unknown {
  if (name === undefined) return text;
  if (value !== undefined && value !== null && !isMapping(value)) return value;
  const section = isMapping(value) ? value : {};
  return { ...section, [name]: replaced(section[name], rest, text) };
}

function without(value: unknown, [section, key]: readonly [string, string]): unknown {
  if (!isMapping(value) || !isMapping(value[section])) return value;
  return { ...value, [section]: Object.fromEntries(Object.entries(value[section]).filter(([name]) => name !== key)) };
}

/** The document with every placeholder replaced. Paths as in ConfigProblem. */
interface Expansion {
  readonly value: unknown;
  /** Values that came whole out of a mounted file, where keys belong. */
  readonly fromFile: ReadonlySet<string>;
}

/**
 * Replaces `${VAR}`, `${VAR:-default}` and `${file:/path}` in string values, never in keys.
 * Inserted text is not expanded again, so a secret may contain `${`. `settled` paths are skipped:
 * the environment overrides them.
 */
export function expand(
  document: unknown,
  env: Environment,
  settled: ReadonlySet<string>,
  problems: ProblemList,
): Expansion {
  const fromFile = new Set<string>();
  const walk = (value: unknown, at: Place | undefined, depth: number): unknown => {
    if (depth > MAX_CONFIG_DEPTH) {
      problems.add(pathTo(at), `must not be nested deeper than ${MAX_CONFIG_DEPTH} levels`);
      return null;
    }
    if (typeof value === 'string') {
      if (!value.includes('${') || settled.has(pathTo(at))) return value;
      const result = expandText(value, env);
      if (result.fault !== undefined) problems.add(pathTo(at), result.fault);
      if (result.fromFile) fromFile.add(pathTo(at));
      return result.text;
    }
    if (value === null || typeof value !== 'object') return value;
    // Copied only where something in it was replaced: most of a document are resources without.
    let copy: Record<string, unknown> | unknown[] | undefined;
    for (const [name, member] of Object.entries(value)) {
      const key = Array.isArray(value) ? Number(name) : name;
      const inner: Place = { parent: at, key };
      if (FORBIDDEN_NAMES.has(name)) {
        problems.add(pathTo(inner), 'is a name that no key may have');
        continue;
      }
      const expanded = walk(member, inner, depth + 1);
      if (expanded === member) continue;
      copy ??= Array.isArray(value) ? [...(value as readonly unknown[])] : { ...value };
      (copy as Record<string | number, unknown>)[key] = expanded;
    }
    return copy ?? value;
  };
  return { value: walk(document, undefined, 0), fromFile };
}

/** Where a value stands; its path is written only where it is told. */
interface Place {
  readonly parent: Place | undefined;
  readonly key: string | number;
}

function pathTo(at: Place | undefined): string {
  return at === undefined ? '' : memberPath(pathTo(at.parent), at.key);
}

interface Expanded {
  readonly text: string;
  readonly fromFile: boolean;
  readonly fault?: string;
}

/** Expands one string value. After a fault the text is of no use and the path is refused. */
function expandText(source: string, env: Environment): Expanded {
  let text = '';
  let rest = source;
  let fromFile = false;
  for (;;) {
    const start = rest.indexOf('${');
    if (start < 0) return { text: text + rest, fromFile };
    const end = rest.indexOf('}', start);
    if (end < 0) return fault('has a placeholder without closing brace');
    const body = rest.slice(start + 2, end);
    if (body.includes('${')) return fault('has a placeholder inside a placeholder, which is not supported');
    const found = resolve(body, env);
    if (found.fault !== undefined) return found;
    const whole = start === 0 && end === rest.length - 1 && text === '';
    fromFile = whole && found.fromFile;
    text += rest.slice(0, start) + found.text;
    rest = rest.slice(end + 1);
  }
}

function resolve(body: string, env: Environment): Expanded {
  if (body.startsWith('file:')) {
    const file = body.slice('file:'.length);
    if (!file.startsWith('/')) return fault('has a file: placeholder whose path is not absolute');
    const secret = readSecretFile(file);
    return secret.kind === 'fault' ? fault(secret.message) : { text: secret.text, fromFile: true };
  }
  const split = body.indexOf(':-');
  const name = split < 0 ? body : body.slice(0, split);
  if (!NAME.test(name)) return fault(`has a malformed placeholder; use \${VAR}, \${VAR:-default} or \${file:/path}`);
  const found = environmentText(name, env);
  if (found.kind === 'fault') return fault(found.message);
  if (found.kind === 'set' && (found.text !== '' || split < 0)) return { text: found.text, fromFile: found.fromFile };
  if (split >= 0) return { text: body.slice(split + 2), fromFile: false };
  return fault(`needs the environment variable ${name} (or ${name}_FILE), which is not set`);
}

function fault(message: string): Expanded {
  return { text: '', fromFile: false, fault: message };
}

type EnvironmentText =
  | { readonly kind: 'unset' }
  | { readonly kind: 'set'; readonly text: string; readonly fromFile: boolean }
  | { readonly kind: 'fault'; readonly message: string };

/** A variable, or the file that the same name with `_FILE` names; both at once is a mistake. */
function environmentText(name: string, env: Environment): EnvironmentText {
  const direct = env[name];
  const file = env[`${name}_FILE`];
  if (!file) return direct === undefined ? { kind: 'unset' } : { kind: 'set', text: direct, fromFile: false };
  if (direct) return { kind: 'fault', message: `${name} and ${name}_FILE are both set; keep one` };
  return readSecretFile(file);
}

class SecretFileError extends Error {}

/** A mounted secret without its trailing newline. Messages name the file, never its content. */
function readSecretFile(path: string): Exclude<EnvironmentText, { kind: 'unset' }> {
  try {
    const text = readBoundedFile(path, MAX_SECRET_BYTES, (message) => new SecretFileError(message));
    return { kind: 'set', text: text.replace(/\r?\n$/, ''), fromFile: true };
  } catch (error) {
    if (!(error instanceof SecretFileError)) throw error;
    return { kind: 'fault', message: `needs a mounted file: ${error.message}` };
  }
}
