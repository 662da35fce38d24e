/** Which header fields never pass between caller and backend, in any spelling of their names. */

/** Fields of one connection (RFC 9110, 7.6.1), of its framing's announcements, and of proxies. */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
]);

/**
 * Fields that say where a message ends and whom it is for. They stay even if `Connection` names
 * them: without its length the body of a GET would be read as the next request.
 */
const FRAMING_FIELDS: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'host']);

const SEPARATOR = /[^a-z0-9]/g;

/**
 * The name as gateways to CGI and its heirs see it: there every separator is the same, so
 * `payment_signature` reaches an application as `payment-signature` does.
 */
function canonicalName(name: string): string {
  return name.toLowerCase().replace(SEPARATOR, '-');
}

/** Fields that do not pass: names and parts of names, canonical. */
interface FieldRule {
  readonly names: readonly string[];
  readonly prefixes: readonly string[];
  /** Last words of names: `client-ip` is also the end of `x-client-ip`. */
  readonly ends?: readonly string[];
  /** Whether only names of letters, digits and hyphens pass. */
  readonly plain?: boolean;
  /** Lower-case names, in this spelling alone, that the rest of the rule does not concern. */
  readonly allowed?: ReadonlySet<string>;
}

/**
 * Compiles the test whether a field passes, by its lower-case name. Callers' names are many and
 * repeat, so the verdict is kept for the first `KEPT_VERDICTS` of them.
 */
export function compileFields(rule: FieldRule): (name: string) => boolean {
  const { names, prefixes, ends = [], plain = false, allowed } = rule;
  const dropped = new Set(names);
  const lastWords = ends.map((end) => `-${end}`);
  const verdicts = new Map<string, boolean>();
  const judge = (name: string): boolean => {
    if (FRAMING_FIELDS.has(name)) return true;
    const canonical = canonicalName(name);
    if (CONNECTION_FIELDS.has(canonical) || FRAMING_FIELDS.has(canonical)) return false;
    if (allowed?.has(name)) return true;
    if (dropped.has(canonical) || (plain && name !== canonical)) return false;
    if (prefixes.some((prefix) => canonical.startsWith(prefix))) return false;
    return !lastWords.some((end) => `-${canonical}`.endsWith(end));
  };
  return function passes(name) {
    const known = verdicts.get(name);
    if (known !== undefined) return known;
    const verdict = judge(name);
    if (verdicts.size < KEPT_VERDICTS) verdicts.set(name, verdict);
    return verdict;
  };
}

/** Names beyond are judged each time: a caller may invent as many as it likes. */
const KEPT_VERDICTS = 512;

const NONE: ReadonlySet<string> = new Set();

/** What `Connection` declares to be about one connection, lower-case; never framing. */
export function namedInConnection(value: string | undefined): ReadonlySet<string> {
  // What nearly all messages say names no field that passes.
  if (value === undefined || value === 'keep-alive' || value === 'close') return NONE;
  const tokens = value.split(',').map((token) => token.trim().toLowerCase());
  return new Set(tokens.filter((token) => !FRAMING_FIELDS.has(token)));
}

/** Fields that mean something only in a head (RFC 9110, 6.5.1), beside those that never pass. */
const HEAD_FIELDS: ReadonlySet<string> = new Set([
  ...['authorization', 'cache-control', 'content-encoding', 'content-range', 'content-type', 'cookie', 'location'],
  ...['age', 'date', 'expires', 'max-forwards', 'range', 'retry-after', 'set-cookie', 'vary', 'www-authenticate'],
]);

/** The trailers of a message that may pass. `passes`: the test for its headers. */
export function passedTrailers(
  trailers: NodeJS.Dict<string>,
  passes: (name: string) => boolean,
): readonly [name: string, value: string][] {
  return Object.entries(trailers).flatMap(([name, value]): [string, string][] =>
    value === undefined || FRAMING_FIELDS.has(name) || HEAD_FIELDS.has(name) || !passes(name) ? [] : [[name, value]],
  );
}
