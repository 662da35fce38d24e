import { memberPath, type ProblemList } from '../problems/problem.ts';
import { type Environment, MAX_CONFIG_DEPTH } from './document/read.ts';
import { environmentText, readSecretFile } from './environment.ts';

/** The document with every placeholder replaced. Paths as in ConfigProblem. */
interface Expansion {
  readonly value: unknown;
  /** Values that came whole out of a mounted file, which is where a key belongs. */
  readonly fromFile: ReadonlySet<string>;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Member names that reach a prototype when a careless copy meets them. */
const FORBIDDEN_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * Replaces `${VAR}`, `${VAR:-default}` and `${file:/path}` in string values, never in keys. What was put in is not expanded again,
 * so a secret may contain `${`. `settled` paths are skipped: the environment overrides them anyway.
 */
export function expand(
  document: unknown,
  env: Environment,
  settled: ReadonlySet<string>,
  problems: ProblemList,
): Expansion {
  const fromFile = new Set<string>();
  const walk = (value: unknown, path: string, depth: number): unknown => {
    if (depth > MAX_CONFIG_DEPTH) {
      problems.add(path, `must not be nested deeper than ${MAX_CONFIG_DEPTH} levels`);
      return null;
    }
    if (typeof value === 'string') {
      if (settled.has(path)) return value;
      const result = expandText(value, env);
      if (result.fault !== undefined) problems.add(path, result.fault);
      if (result.fromFile) fromFile.add(path);
      return result.text;
    }
    if (Array.isArray(value))
      return value.map((item: unknown, index) => walk(item, memberPath(path, index), depth + 1));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]: [string, unknown]) => {
        const inner = memberPath(path, name);
        if (FORBIDDEN_NAMES.has(name)) problems.add(inner, 'is a name that no key may have');
        return [name, walk(member, inner, depth + 1)];
      }),
    );
  };
  return { value: walk(document, '', 0), fromFile };
}

interface Expanded {
  readonly text: string;
  readonly fromFile: boolean;
  readonly fault?: string;
}

/** One string value. After a fault the text is of no use and the path is refused. */
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
