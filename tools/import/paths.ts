/** Paths of documents as templates: some tools write them in the notations of routers. */

import { Inexpressible } from './references.ts';

/** Braces, which may hold a pattern with braces of its own. */
const BRACES = /\{((?:[^{}]|\{[^{}]*\})*)\}/g;
/** `{?q,n}` and its likes: a query or a fragment, which the parameters tell. */
const QUERY = /\{[?&#][^{}]*\}/g;

/**
 * The path as a template of `{name}`s. `declared`: the names of its path parameters. A fragment,
 * which tells operations of one path apart, falls away.
 * @throws Inexpressible, with the right spelling
 */
export function templateOf(path: string, declared: readonly string[]): string {
  const nameFor = (text: string): string | undefined =>
    declared.find((name) => name === text) ?? declared.find((name) => bare(name) === bare(text));
  const known = (text: string, written: string): string => {
    const name = nameFor(text);
    if (name !== undefined) return `{${name}}`;
    throw new Inexpressible(
      `has ${written} in its path, where a parameter is written {${text}}: write so, and declare the path parameter ${text}`,
    );
  };
  const [whole = ''] = path.replaceAll(QUERY, '').split('#');
  const template = whole
    .replaceAll(BRACES, (_written, inner: string) => `{${nameFor(inner) ?? nameFor(plain(inner)) ?? plain(inner)}}`)
    .replaceAll(/<(?:([\w-]+):)?([\w-]+)>/g, (written, first: string | undefined, last: string) =>
      known(first !== undefined && nameFor(last) === undefined ? first : last, written),
    )
    .replaceAll(/(?<=\/)[:*]([A-Za-z_]\w*)(?:\([^()]*\))?[?*+]?/g, (written, name: string) => known(name, written));
  if (/\/\*+(?:\/|$)/.test(template))
    throw new Inexpressible('has a * in its path: write {name} instead, and declare the path parameter name');
  const lost = declared.find((name) => !template.includes(`{${name}}`));
  if (lost !== undefined)
    throw new Inexpressible(`has the path parameter ${lost}, which is not in its path: write {${lost}} there`);
  return template;
}

/** A name without signs and converters: of `{id:int}`, `{rest:path}`, `{id?}`. */
function plain(inner: string): string {
  return inner.replaceAll(/^[{*+/.;]+|[}?*+!]+$|[:=(|].*$/g, '');
}

/** Equal for the spellings of one name. */
function bare(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase();
}
