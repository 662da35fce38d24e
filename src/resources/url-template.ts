/** Backend paths as templates, such as `/reports/{city}?format=json`: read once, then filled. */

import { isObject, type Json } from '../json/json.ts';

export interface PathTemplate {
  /** The texts around the parameters: one before each of them and one at the end. */
  readonly literals: readonly string[];
  readonly parameters: readonly string[];
  /** The fixed query as configured, without `?`. */
  readonly query: string;
  readonly queryNames: ReadonlySet<string>;
  /** Number of `/`-separated parts of the path, the same for every input. */
  readonly segmentCount: number;
}

type TemplateReading =
  | { readonly ok: true; readonly template: PathTemplate }
  | { readonly ok: false; readonly message: string };

const PARAMETER = /\{([^{}]*)\}/g;
/** An origin for parsing a path with `URL`; it is never contacted. */
const PLACEHOLDER_ORIGIN = 'http://backend.invalid';

/** Reads a template and refuses one that a URL parser would change. */
export function readTemplate(text: string): TemplateReading {
  const refuse = (message: string): TemplateReading => ({ ok: false, message });
  if (!text.startsWith('/') || text.startsWith('//'))
    return refuse('must be a path that begins with one /: no host, no parameter before it');
  if (text.includes('#')) return refuse('must not have a fragment');
  const other = /\{[^{}]*\?\}|\{\{[^{}]*\}\}|<[^<>]*>/.exec(text)?.[0];
  if (other !== undefined)
    return refuse(`has ${other}: a parameter is written {${/[\w.-]+(?=\W*$)/.exec(other)?.[0] ?? 'name'}}`);
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
  const url = new URL(PLACEHOLDER_ORIGIN + sample);
  if (url.pathname + (query === '' ? '' : url.search) !== sample)
    return refuse('must be in normal form: no . or .. segments, no empty query, special characters percent-encoded');
  const queryNames = new Set(new URLSearchParams(query).keys());
  return { ok: true, template: { literals, parameters, query, queryNames, segmentCount: segments(path) } };
}

/** `//`, `;`, and escapes that some servers decode before they route. */
const READ_DIFFERENTLY = /\/\/|;|%(?:2e|2f|5c|25|3b|3f|23|[01][0-9a-f]|7f)/i;

/** Names a notation of routers, which is ordinary text here, as the end of a sentence. */
export function routerNotation(template: string): string | undefined {
  const path = templatePath(template);
  const named = /\/:([^/{}]*)/.exec(path);
  if (named !== null)
    return `has :${named[1]}, which is ordinary text here: a parameter is written {${named[1] || 'name'}}`;
  return path.includes('*') ? 'has a *, which is ordinary text here: a parameter is written {name}' : undefined;
}

/**
 * Why the paths of requests cannot be compared with a template, as the end of a sentence; undefined
 * where they can. The notations of routers are ordinary text here, so they would match nothing.
 */
export function comparisonFault(template: string): string | undefined {
  if (READ_DIFFERENTLY.test(templatePath(template)))
    return routerNotation(template) ?? 'has //, ; or an encoded separator, which servers read differently';
  return routerNotation(template);
}

/**
 * The shape of a path, equal for templates that differ only in case and in names of parameters:
 * servers may compare paths without regard to case. The query does not count.
 */
export function pathShape(template: string): string {
  return templatePath(template).replaceAll(PARAMETER, '{}').toLowerCase();
}

/** A template without its fixed query. */
export function templatePath(template: string): string {
  return template.replace(/\?.*/s, '');
}

/** The names in `{…}`, in order. */
export function templateParameters(text: string): readonly string[] {
  return [...text.matchAll(PARAMETER)].map(([, name = '']) => name);
}

/** The value of a path parameter, encoded; undefined for one that could leave its segment. */
export function encodePathValue(value: unknown): string | undefined {
  const text = scalarText(value);
  if (text === undefined || text === '' || /\p{Cc}/u.test(text)) return undefined;
  // A backend that decodes %2F before routing would follow `../admin`.
  if (text.split(/[/\\]/).some((part) => part === '.' || part === '..')) return undefined;
  return encodeText(text);
}

/** A string, number or boolean as text; undefined for everything else. */
function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

/** Percent-encodes all but unreserved characters; undefined for half a surrogate pair. */
function encodeText(text: string): string | undefined {
  return text.isWellFormed() ? encodeURIComponent(text) : undefined;
}

/** The path with its parameters filled in; undefined when a URL parser reads another path. */
export function fillPath(template: PathTemplate, values: readonly string[], query: string): string | undefined {
  const path = template.literals.map((literal, index) => literal + (values[index] ?? '')).join('');
  // A path without parameters was checked when the template was read.
  if (values.length > 0 && !isReadAsWritten(path, template)) return undefined;
  return query === '' ? path : `${path}?${query}`;
}

/** A URL parser must find the same origin and the same number of segments, and rewrite nothing. */
function isReadAsWritten(path: string, { segmentCount }: PathTemplate): boolean {
  const url = URL.parse(PLACEHOLDER_ORIGIN + path);
  return url?.origin === PLACEHOLDER_ORIGIN && url.pathname === path && segments(path) === segmentCount;
}

function segments(path: string): number {
  return path.split('/').length;
}

/**
 * How a list or an object is written. `comma`, `space`, `pipe`: a list in one pair. `deepObject`: a
 * pair for each value inside, `name[key]=value`, items of a list as `name[]=value` or, when they
 * are no scalars, `name[0][key]=value`. `json`: JSON text in one pair.
 */
export type PairStyle = keyof typeof WRITERS;

type Pairs = readonly string[] | undefined;

const WRITERS = {
  comma: (name: string, value: Json) => joined(name, value, ','),
  space: (name: string, value: Json) => joined(name, value, ' '),
  pipe: (name: string, value: Json) => joined(name, value, '|'),
  deepObject,
  json: (name: string, value: Json) => pair(name, JSON.stringify(value)),
};

/**
 * The pairs of one value, percent-encoded. Without a style a list becomes a pair for each item;
 * scalars look alike in each style but `json`. Undefined: the value has no such form.
 */
export function pairsOf(name: string, value: Json, style: PairStyle | undefined): Pairs {
  return style === undefined ? repeated(name, value) : WRITERS[style](name, value);
}

function repeated(name: string, value: Json): Pairs {
  return together(Array.isArray(value) ? value.map((item) => pair(name, scalarText(item))) : [scalar(name, value)]);
}

/** An item that has the separator would become two. */
function joined(name: string, value: Json, separator: string): Pairs {
  if (!Array.isArray(value)) return scalar(name, value);
  const texts = value.map(scalarText);
  if (texts.some((text) => text === undefined || text.includes(separator))) return undefined;
  return texts.length === 0 ? [] : pair(name, texts.join(separator), separator);
}

function deepObject(name: string, value: Json): Pairs {
  if (Array.isArray(value)) {
    // An index tells the members of two objects apart, and some servers read it as a key.
    const indexed = value.some((item) => scalarText(item) === undefined);
    return together(value.map((item, index) => deepObject(`${name}[${indexed ? index : ''}]`, item)));
  }
  if (isObject(value)) return together(Object.entries(value).map(([key, item]) => deepObject(`${name}[${key}]`, item)));
  return scalar(name, value);
}

function scalar(name: string, value: Json): Pairs {
  return pair(name, scalarText(value));
}

/** `kept`: a comma is not encoded if it separates, because servers split before they decode. */
function pair(name: string, text: string | undefined, kept?: string): Pairs {
  const key = encodeText(name);
  const encoded = text === undefined ? undefined : encodeText(text);
  if (key === undefined || encoded === undefined) return undefined;
  return [`${key}=${kept === ',' ? encoded.replaceAll('%2C', ',') : encoded}`];
}

function together(parts: readonly Pairs[]): Pairs {
  const known = parts.filter((part) => part !== undefined);
  return known.length === parts.length ? known.flat() : undefined;
}
