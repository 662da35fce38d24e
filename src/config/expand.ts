/** Puts environment variables and mounted files into the document, before it is validated. */

import { memberPath, type ProblemList } from '../problems/problem.ts';
import { isMapping } from './document/mapping.ts';
import { type Member, pathTo, stepsTo } from './document/member.ts';
import { type Environment, MAX_CONFIG_DEPTH, readBoundedFile } from './document/read.ts';
import { typedText } from './typed-text.ts';

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
  readonly origin: string;
}

/** Where values come from that are not in the file, by their paths: a variable, a mounted file. */
export type Origins = ReadonlyMap<string, string>;

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
    if (found.kind === 'fault') problems.add(dotted(override.path), found.message);
    else if (found.kind === 'set' && found.text !== '') chosen.push({ override, ...found });
  }
  return {
    origins: new Map(chosen.map(({ override, origin }) => [dotted(override.path), origin])),
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
  const insert = (value: string, at: Member | undefined): unknown => {
    const path = pathTo(at);
    if (settled.has(path)) return value;
    const { text, fault, isWhole, ...result } = expandText(value, env);
    if (fault !== undefined) problems.add(path, fault);
    if (result.fromFile) fromFile.add(path);
    if (result.isUnset) unset.add(path);
    const origin = [...new Set(result.origins)].join(' and ');
    if (origin !== '') origins.set(path, origin);
    if (!isWhole || fault !== undefined) return text;
    const typed = typedText(text, stepsTo(at));
    if (typed.ok) return typed.value;
    problems.add(path, `must be ${typed.wanted} and nothing else, which ${origin} is not`);
    return text;
  };
  const walk = (value: unknown, at: Member | undefined, depth: number): unknown => {
    if (depth > MAX_CONFIG_DEPTH) {
      problems.add(pathTo(at), `must not be nested deeper than ${MAX_CONFIG_DEPTH} levels`);
      return null;
    }
    if (typeof value === 'string') return value.includes('${') ? insert(value, at) : value;
    if (value === null || typeof value !== 'object') return value;
    // Copied only where something in it was replaced: most of a document are resources without.
    let copy: Record<string, unknown> | unknown[] | undefined;
    for (const [name, member] of Object.entries(value)) {
      const key = Array.isArray(value) ? Number(name) : name;
      const inner: Member = { parent: at, key };
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
  return { value: walk(document, undefined, 0), fromFile, origins, unset };
}

interface Expanded {
  readonly text: string;
  /** Whether all of it came out of one mounted file. */
  readonly fromFile: boolean;
  /** Whether all of it came out of one placeholder. */
  readonly isWhole: boolean;
  /** Whether the fault is that a variable or a file is not there. */
  readonly isUnset: boolean;
  readonly origins: readonly string[];
  readonly fault?: string;
}

/** Expands one string value. After a fault the text is of no use and the path is refused. */
function expandText(source: string, env: Environment): Expanded {
  const origins: string[] = [];
  let text = '';
  let rest = source;
  let fromFile = false;
  let isWhole = false;
  const ended = (fault?: string, isUnset = false): Expanded => ({
    ...{ text: text + rest, fromFile, isWhole, isUnset, origins },
    ...(fault === undefined ? {} : { fault }),
  });
  for (;;) {
    const start = rest.indexOf('${');
    if (start < 0) return ended();
    const end = rest.indexOf('}', start);
    if (end < 0) return ended('has a placeholder without closing brace');
    const body = rest.slice(start + 2, end);
    if (body.includes('${')) return ended('has a placeholder inside a placeholder, which is not supported');
    const found = resolve(body, env);
    if (found.kind === 'fault') return ended(found.message, found.isUnset);
    isWhole = end - start + 1 === source.length;
    fromFile = isWhole && found.fromFile;
    origins.push(found.origin);
    text += rest.slice(0, start) + found.text;
    rest = rest.slice(end + 1);
  }
}

function resolve(body: string, env: Environment): Exclude<EnvironmentText, { readonly kind: 'unset' }> {
  const fault = (message: string) => ({ kind: 'fault', message }) as const;
  if (body.startsWith('file:')) {
    const file = body.slice('file:'.length);
    if (file.startsWith('/')) return readSecretFile(file);
    return fault('has a file: placeholder whose path is not absolute; write $' + '{file:/path/of/the/file}');
  }
  const split = body.indexOf(':-');
  const name = split < 0 ? body : body.slice(0, split);
  if (!NAME.test(name)) return fault(`has a malformed placeholder; use \${VAR}, \${VAR:-default} or \${file:/path}`);
  const found = environmentText(name, env);
  if (found.kind === 'fault' || (found.kind === 'set' && (found.text !== '' || split < 0))) return found;
  if (split < 0) return unset(`needs the environment variable ${name} (or ${name}_FILE), which is not set`);
  return { kind: 'set', text: body.slice(split + 2), fromFile: false, origin: `the default of ${name}` };
}

type EnvironmentText =
  | { readonly kind: 'unset' }
  | { readonly kind: 'set'; readonly text: string; readonly fromFile: boolean; readonly origin: string }
  | { readonly kind: 'fault'; readonly message: string; readonly isUnset?: true };

function unset(message: string) {
  return { kind: 'fault', message, isUnset: true } as const;
}

/** A variable, or the file that the same name with `_FILE` names; both at once is a mistake. */
function environmentText(name: string, env: Environment): EnvironmentText {
  const direct = env[name];
  const file = env[`${name}_FILE`];
  if (file) {
    if (direct) return { kind: 'fault', message: `${name} and ${name}_FILE are both set; keep one` };
    return readSecretFile(file);
  }
  if (direct === undefined) return { kind: 'unset' };
  return { kind: 'set', text: direct, fromFile: false, origin: `the environment variable ${name}` };
}

class SecretFileError extends Error {}

/** A mounted secret without its trailing newline. Messages name the file, never its content. */
function readSecretFile(path: string): Exclude<EnvironmentText, { readonly kind: 'unset' }> {
  try {
    const text = readBoundedFile(path, MAX_SECRET_BYTES, (message) => new SecretFileError(`${path} ${message}`));
    return { kind: 'set', text: text.replace(/\r?\n$/, ''), fromFile: true, origin: `the file ${path}` };
  } catch (error) {
    if (!(error instanceof SecretFileError)) throw error;
    return unset(`needs a mounted file: ${error.message}`);
  }
}
