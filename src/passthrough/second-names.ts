/**
 * Finds other names that servers give to guarded paths. Many serve one handler below a mount,
 * behind a locale or a front controller, with a format suffix, or as the value of a parameter:
 * `/orders/x`, `/en/orders`, `/index.php/orders`, `/orders.json`, `/image?url=%2Forders`. The
 * gateway cannot know which of them the merchant's server has, so none passes unless the
 * configuration names it (contract 7.4).
 */

import { createLiteralOrder } from './literal-order.ts';
import { decodeAll, foldedSegments, readings } from './path-guard.ts';
import { createPathTrie } from './path-trie.ts';

/** Where a second name stands in a target. */
export type SecondName = 'path' | 'query';

/** Signs of a path in a query: a slash in any form, or a parameter that is one by its name. */
const NAMING_QUERY = /[/\\%]|(?:path|route|ur[il]|page|src|href|file|endpoint|\br)=/i;
const NAMING_PARAMETER = /(?:path|route|ur[il]|page|src|href|file|endpoint|^r)$/;
/** Characters around paths in lists, documents and URLs that are the value of a parameter. */
const AROUND = /["'()[\]{}<>|,;:=?#&]/g;

/**
 * Compiles the search for second names of path templates. A template without a literal segment has
 * none that could be told from other paths. `pathPrefix`: where the paths of queries begin.
 */
export function createSecondNames(
  { sold, excluded }: { readonly sold: readonly string[]; readonly excluded: readonly string[] },
  pathPrefix: string,
): (path: string, query: string) => SecondName | undefined {
  const literalPaths = (templates: readonly string[]) =>
    templates.map((template) => literalPath(foldedSegments(template))).filter(({ literals }) => literals.length > 0);
  const soldPaths = literalPaths(sold);
  const known = [...soldPaths, ...literalPaths(excluded)];
  const inOrder = createLiteralOrder(known);
  // Routers that compare the start of a path take `/orders-all` for `/orders`.
  const startingWith = createPathTrie(
    soldPaths.flatMap(({ segments, tail }) => {
      const last = segments.at(-1)?.[0] ?? '';
      return tail.length > 0 || last === '' ? [] : [startOf(segments.slice(0, -1), last)];
    }),
    { trims: true },
  );
  const isName = (text: string): boolean => inOrder(text) || startingWith(text).length > 0;
  return function secondName(path, query) {
    if (known.length === 0) return undefined;
    if (readings(path).some(isName)) return 'path';
    if (!NAMING_QUERY.test(query)) return undefined;
    return query.split('&').some((pair) => pathsIn(pair).some((text) => isName(`${pathPrefix}/${text}`)))
      ? 'query'
      : undefined;
  };
}

type Segments = readonly (readonly string[])[];

/** The literal segments, and the ones with parameters behind them: without these it is a list. */
function literalPath(segments: Segments) {
  const isLiteral = (segment: readonly string[] | undefined): boolean => segment?.length === 1 && segment[0] !== '';
  const end = segments.findLastIndex(isLiteral) + 1;
  const literals = segments.filter(isLiteral).flat();
  // Servers of files know the root by this name.
  return { segments, literals: segments.length === 0 ? ['index'] : literals, tail: segments.slice(end) };
}

function startOf(above: Segments, last: string) {
  return { segments: [...above, [last, '']], below: true, owner: last };
}

/** Parts of a pair of a query that may be a path: the value, or the name in front controllers. */
function pathsIn(pair: string): readonly string[] {
  const equals = pair.indexOf('=');
  const name = decodeAll(equals < 0 ? pair : pair.slice(0, equals));
  const value = equals < 0 ? '' : decodeAll(pair.slice(equals + 1));
  const found = [name, value].filter((text) => text.includes('/')).map((text) => text.replaceAll(AROUND, '/'));
  return NAMING_PARAMETER.test(name) ? [...found, value] : found;
}
