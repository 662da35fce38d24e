/** The backend path of a resource, parsed once: `/reports/{city}?format=json`. */
export interface PathTemplate {
  /** Literal texts and parameters in turn: literal first, literal last. */
  readonly literals: readonly string[];
  readonly parameters: readonly string[];
  /** The fixed query without `?`, as configured. */
  readonly query: string;
  readonly queryNames: ReadonlySet<string>;
  /** `/`-separated parts of the path: the same for every input. */
  readonly segmentCount: number;
}

type TemplateReading =
  | { readonly ok: true; readonly template: PathTemplate }
  | { readonly ok: false; readonly message: string };

const PARAMETER = /\{([^{}]*)\}/g;
/** Host for parsing a path alone; never contacted. */
const NOWHERE = 'http://backend.invalid';

/**
 * Reads a template and refuses whatever a URL parser would change: what is configured is what is
 * called.
 */
export function readTemplate(text: string): TemplateReading {
  const refuse = (message: string): TemplateReading => ({ ok: false, message });
  if (!text.startsWith('/') || text.startsWith('//'))
    return refuse('must be a path that begins with one /: no host, no parameter before it');
  if (text.includes('#')) return refuse('must not have a fragment');
  const mark = text.indexOf('?');
  const path = mark < 0 ? text : text.slice(0, mark);
  const query = mark < 0 ? '' : text.slice(mark + 1);
  if (/[{}]/.test(query))
    return refuse('must not have {…} in the query: input properties get there by inputBindings or by default');
  const parameters = templateParameters(path);
  const literals = path.split(/\{[^{}]*\}/);
  if (literals.some((literal) => /[{}]/.test(literal))) return refuse('has a stray brace');
  if (parameters.some((name) => name === '')) return refuse('has a {} without a name');
  if (new Set(parameters).size !== parameters.length) return refuse('names the same parameter twice');
  const sample = literals.join('x') + (mark < 0 ? '' : `?${query}`);
  if (/[^\x21-\x7e]|\\/.test(sample))
    return refuse('must be visible ASCII without backslashes; percent-encode the rest');
  const url = new URL(NOWHERE + sample);
  if (url.pathname + (query === '' ? '' : url.search) !== sample)
    return refuse('must be in normal form: no . or .. segments, no empty query, special characters percent-encoded');
  const queryNames = new Set(new URLSearchParams(query).keys());
  return { ok: true, template: { literals, parameters, query, queryNames, segmentCount: segments(path) } };
}

/** The names in `{…}`, in order. */
export function templateParameters(text: string): readonly string[] {
  return [...text.matchAll(PARAMETER)].map(([, name = '']) => name);
}

/**
 * A path parameter's value as it stands in the URL, or undefined when it must not: it could leave
 * its place in the path.
 */
export function encodePathValue(value: unknown): string | undefined {
  const text = scalarText(value);
  if (text === undefined || text === '' || /\p{Cc}/u.test(text)) return undefined;
  // A merchant that decodes %2F before routing would climb with `../admin`.
  if (text.split(/[/\\]/).some((part) => part === '.' || part === '..')) return undefined;
  return encodeText(text);
}

/** A string, number or boolean as text; undefined for everything else. */
export function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

/** Percent-encodes all but unreserved characters; undefined for half a surrogate pair. */
export function encodeText(text: string): string | undefined {
  return text.isWellFormed() ? encodeURIComponent(text) : undefined;
}

/**
 * The path with its parameters filled in; `undefined` when the URL would not be the one that was
 * configured.
 */
export function fillPath(template: PathTemplate, values: readonly string[], query: string): string | undefined {
  const path = template.literals.map((literal, index) => literal + (values[index] ?? '')).join('');
  const target = query === '' ? path : `${path}?${query}`;
  // The last word belongs to a URL parser: same origin, same number of segments, nothing rewritten.
  const url = URL.parse(NOWHERE + target);
  if (
    url === null ||
    url.origin !== NOWHERE ||
    url.pathname !== path ||
    segments(url.pathname) !== template.segmentCount
  )
    return undefined;
  return target;
}

function segments(path: string): number {
  return path.split('/').length;
}
