/**
 * Finds the operation and the session of a checkout call by its raw path, and hides ids from the
 * log.
 */

import { OPERATION_RULES, OPERATIONS, type Operation, SESSION_PLACE } from '../../checkouts/operations.ts';
import { AcpError } from './error.ts';

/** The operation, and the decoded id of its session; undefined for create. */
export interface Route {
  readonly operation: Operation;
  readonly sessionId: string | undefined;
}

/** Longest session id once decoded, characters (code points). */
const MAX_SESSION_ID = 256;
/** A path segment (RFC 3986, 3.3). */
const SEGMENT = /^(?:[\w.~!$&'()*+,;=:@-]|%[0-9a-f]{2})+$/i;
const CONTROL = /\p{Cc}/u;

/** The operations of one path, by their methods. */
interface Path {
  readonly segments: readonly string[];
  readonly operations: ReadonlyMap<string, Operation>;
}

const PATHS: readonly Path[] = Object.entries(
  Object.groupBy(OPERATIONS, (operation) => OPERATION_RULES[operation].path),
).map(([path, operations = []]) => ({
  segments: path.split('/'),
  operations: new Map(operations.map((operation) => [OPERATION_RULES[operation].method, operation])),
}));

/**
 * By the raw path below the mount: decoding before matching would give one session several paths,
 * which the backend may read differently (acp 13.2).
 * @throws AcpError not_found, method_not_allowed
 */
export function routeOf(method: string | undefined, path: string): Route {
  const segments = path.split('/');
  const found = PATHS.find((pattern) => fits(pattern.segments, segments));
  if (found === undefined) throw new AcpError('not_found');
  const at = found.segments.indexOf(SESSION_PLACE);
  const sessionId = at === -1 ? undefined : sessionIdOf(segments[at] ?? '');
  if (at !== -1 && sessionId === undefined) throw new AcpError('not_found');
  const operation = found.operations.get(method ?? '');
  if (operation !== undefined) return { operation, sessionId };
  const allow = [...found.operations.keys()].join(', ');
  throw new AcpError('method_not_allowed', { message: `This route serves ${allow}.`, headers: { allow } });
}

const WORDS: ReadonlySet<string> = new Set(
  PATHS.flatMap(({ segments }) => segments.filter((word) => word !== SESSION_PLACE)),
);

/** A path below the mount for the log, without ids and other text of the caller. */
export function withoutIds(path: string): string {
  return path
    .split('/')
    .map((segment) => (WORDS.has(segment) ? segment : '*'))
    .join('/');
}

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  if (pattern.length !== segments.length) return false;
  return pattern.every((expected, at) => expected === SESSION_PLACE || expected === segments[at]);
}

/**
 * Backends choose ids: `gid://shop/Checkout/1` is one, sent as `gid%3A%2F%2Fshop%2FCheckout%2F1`.
 */
function sessionIdOf(segment: string): string | undefined {
  if (!SEGMENT.test(segment)) return undefined;
  const id = decoded(segment);
  if (id === undefined || [...id].length > MAX_SESSION_ID || CONTROL.test(id)) return undefined;
  return hasSteps(id) ? undefined : id;
}

/** Undefined: the bytes are not UTF-8. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** Whether a backend that decodes before it resolves paths would be led to another path. */
function hasSteps(id: string): boolean {
  const pieces = id.replace(SCHEME, '').split('/');
  return pieces.some((piece) => piece === '' || piece === '.' || piece === '..');
}
