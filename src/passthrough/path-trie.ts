/**
 * Finds which of many path templates a path may be one of, segment by segment, so that thousands of
 * them cost a request no more than a few. A path may fit several.
 */

/** A template as the literals of its segments: `['a']` for `a`, `['', '.csv']` for `{x}.csv`. */
interface TemplatePath<Owner> {
  readonly segments: readonly (readonly string[])[];
  /** Whether everything below it fits as well. */
  readonly below?: boolean | undefined;
  readonly owner: Owner;
}

interface Found<Owner> {
  /** Where it stood in the list. */
  readonly index: number;
  readonly owner: Owner;
}

interface Node<Owner> {
  /** By their text; without spaces and dots at its end where these do not count. */
  readonly literals: Map<string, Node<Owner>>;
  /** Segments with parameters, by their literals. */
  readonly patterns: Map<string, { readonly literals: readonly string[]; readonly node: Node<Owner> }>;
  readonly here: Found<Owner>[];
  readonly below: Found<Owner>[];
}

/**
 * Compiles the owners of the templates that a path fits, in the order of the list. `trims`: spaces
 * and dots behind a segment, and a last segment of them alone, do not count.
 */
export function createPathTrie<Owner>(
  paths: readonly TemplatePath<Owner>[],
  trims: boolean,
): (path: string) => readonly Owner[] {
  const keyOf = trims ? trimmed : (segment: string): string => segment;
  const childOf = ({ literals, patterns }: Node<Owner>, segment: readonly string[]): Node<Owner> => {
    const [first = '', ...others] = segment;
    const key = others.length === 0 ? keyOf(first) : JSON.stringify(segment);
    const node = (others.length === 0 ? literals.get(key) : patterns.get(key)?.node) ?? nodeOf();
    if (others.length === 0) literals.set(key, node);
    else patterns.set(key, { literals: segment, node });
    return node;
  };
  const root = nodeOf<Owner>();
  for (const [index, { segments, below = false, owner }] of paths.entries()) {
    const node = segments.reduce(childOf, root);
    (below ? node.below : node.here).push({ index, owner });
  }
  return function fitting(path) {
    const found: Found<Owner>[] = [];
    const segments = path.split('/').slice(1);
    const descend = (node: Node<Owner>, at: number): void => {
      found.push(...node.below);
      const segment = segments[at];
      if (segment === undefined || (trims && at === segments.length - 1 && keyOf(segment) === ''))
        found.push(...node.here);
      if (segment === undefined) return;
      const literal = node.literals.get(keyOf(segment));
      if (literal !== undefined) descend(literal, at + 1);
      for (const child of node.patterns.values()) if (fits(child.literals, segment, trims)) descend(child.node, at + 1);
    };
    descend(root, 0);
    return found.sort((one, other) => one.index - other.index).map(({ owner }) => owner);
  };
}

function nodeOf<Owner>(): Node<Owner> {
  return { literals: new Map(), patterns: new Map(), here: [], below: [] };
}

/** Whether literals stand in a segment in order, the first at its start, the last at its end. */
function fits(literals: readonly string[], segment: string, trims: boolean): boolean {
  const [first = '', ...others] = literals;
  const last = others.pop();
  if (!segment.startsWith(first)) return false;
  let at = first.length;
  for (const literal of others) {
    const found = segment.indexOf(literal, at);
    if (found < 0) return false;
    at = found + literal.length;
  }
  // A parameter at the end takes the rest.
  if (last === undefined || last === '') return true;
  const found = segment.lastIndexOf(last);
  return found >= at && isEnd(segment, found + last.length, trims);
}

function isEnd(segment: string, at: number, trims: boolean): boolean {
  return at === segment.length || (trims && trimmed(segment).length <= at);
}

/** Without spaces and dots at its end. A pattern would try each of a long row of them. */
function trimmed(segment: string): string {
  let end = segment.length;
  while (end > 0 && (segment[end - 1] === ' ' || segment[end - 1] === '.')) end -= 1;
  return end === segment.length ? segment : segment.slice(0, end);
}
