import { memberPath, type ProblemList } from '../problems/problem.ts';
import { type Environment, readBoundedFile } from './document/read.ts';

/** Largest mounted secret, bytes. */
const MAX_SECRET_BYTES = 65_536;

type EnvironmentText =
  | { readonly kind: 'unset' }
  | { readonly kind: 'set'; readonly text: string; readonly fromFile: boolean }
  | { readonly kind: 'fault'; readonly message: string };

/** A variable, or the file that the variable of the same name with `_FILE` points to. Both at once is a mistake. */
export function environmentText(name: string, env: Environment): EnvironmentText {
  const direct = env[name];
  const file = env[`${name}_FILE`];
  if (!file) return direct === undefined ? { kind: 'unset' } : { kind: 'set', text: direct, fromFile: false };
  if (direct) return { kind: 'fault', message: `${name} and ${name}_FILE are both set; keep one` };
  return readSecretFile(file);
}

/** A mounted secret without its trailing newline. Messages name the file, never its content. */
export function readSecretFile(path: string): Exclude<EnvironmentText, { kind: 'unset' }> {
  try {
    const text = readBoundedFile(path, MAX_SECRET_BYTES, (message) => new SecretFileError(message));
    return { kind: 'set', text: text.replace(/\r?\n$/, ''), fromFile: true };
  } catch (error) {
    if (!(error instanceof SecretFileError)) throw error;
    return { kind: 'fault', message: `needs a mounted file: ${error.message}` };
  }
}

class SecretFileError extends Error {}

interface Override {
  readonly name: string;
  readonly path: readonly [string, ...string[]];
  /** Only when the document already has this section: a token alone does not switch an adapter on. */
  readonly needs?: readonly string[];
  /** Replaced by the override: one store, not two. */
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

/** The overrides that the environment sets, with the paths they settle; empty variables count as unset. */
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
