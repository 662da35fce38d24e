/**
 * Finds whether the literal segments of some guarded path stand in a text in their order, however
 * many paths are guarded. For paths that servers read in different ways.
 */

/** What servers take for the end of a literal segment, once everything is decoded. */
const TERMINATOR = /[/;?#.\s\p{Cc}]/u;

interface Node {
  readonly next: Map<string, Node>;
  /** Whether the literals of a path end here. */
  ends: boolean;
}

/** `lists`: the folded literals of each path, none empty or with a slash. */
export function createLiteralOrder(lists: readonly (readonly string[])[]): (text: string) => boolean {
  const root: Node = { next: new Map(), ends: false };
  for (const literals of lists) {
    const end = literals.reduce<Node>(nextOf, root);
    end.ends = true;
  }
  const known = new Set(lists.flat());
  const longest = Math.max(0, ...new Set(lists.flat().map(({ length }) => length)));
  return function occursInOrder(text) {
    if (root.ends) return true;
    const places = placesOf(known, longest, text);
    // Each literal as early as it can stand: the others have the most text left then.
    const reaches = (node: Node, from: number): boolean => {
      if (node.ends) return true;
      const literals = node.next.size < places.size ? node.next.keys() : places.keys();
      for (const literal of literals) {
        const next = node.next.get(literal);
        const at = next && firstFrom(places.get(literal) ?? [], from);
        if (next !== undefined && at !== undefined && reaches(next, at + 1 + literal.length)) return true;
      }
      return false;
    };
    return reaches(root, 0);
  };
}

function nextOf(node: Node, literal: string): Node {
  const known = node.next.get(literal) ?? { next: new Map<string, Node>(), ends: false };
  node.next.set(literal, known);
  return known;
}

/** Where the slash before each known literal stands, in ascending order. */
function placesOf(known: ReadonlySet<string>, longest: number, text: string): ReadonlyMap<string, readonly number[]> {
  const places = new Map<string, number[]>();
  for (let slash = text.indexOf('/'); slash >= 0; slash = text.indexOf('/', slash + 1)) {
    const from = slash + 1;
    for (let end = from + 1; end <= text.length && end - from <= longest; end += 1) {
      if (end < text.length && !TERMINATOR.test(text.charAt(end))) continue;
      const literal = text.slice(from, end);
      if (known.has(literal)) {
        const some = places.get(literal);
        if (some === undefined) places.set(literal, [slash]);
        else some.push(slash);
      }
      if (text.charAt(end) === '/') break;
    }
  }
  return places;
}

/** The first of ascending places that is not before `from`. */
function firstFrom(places: readonly number[], from: number): number | undefined {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return places[low];
}
