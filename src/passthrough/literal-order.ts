/**
 * Finds whether the literal segments of some guarded path stand in a text in their order, however
 * many paths are guarded. For paths that servers read in different ways.
 */

/** What servers take for the end of a literal segment, once everything is decoded. */
const TERMINATOR = /[/;?#.\s\p{Cc}]/u;

interface Node {
  readonly next: Map<string, Node>;
  /** The tails behind the literals of the paths that end here. */
  readonly tails: Tail[];
}

/** Segments with parameters, each as the literals around them. */
type Tail = readonly (readonly string[])[];

/** A guarded path. */
interface LiteralPath {
  /** Its literal segments, folded, none empty or with a slash. */
  readonly literals: readonly string[];
  /** The segments that must stand behind them, not at once, but in this order. */
  readonly tail?: Tail;
}

export function createLiteralOrder(paths: readonly LiteralPath[]): (text: string) => boolean {
  const root: Node = { next: new Map(), tails: [] };
  for (const { literals, tail = [] } of paths) literals.reduce<Node>(nextOf, root).tails.push(tail);
  const all = paths.flatMap(({ literals }) => literals);
  const known = new Set(all);
  const longest = Math.max(0, ...new Set(all.map(({ length }) => length)));
  return function occursInOrder(text) {
    if (endsHere(root, text, 0)) return true;
    const places = placesOf(known, longest, text);
    // Each literal as early as it can stand: the others have the most text left then.
    const reaches = (node: Node, from: number): boolean => {
      if (endsHere(node, text, from)) return true;
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
  const known = node.next.get(literal) ?? { next: new Map<string, Node>(), tails: [] };
  node.next.set(literal, known);
  return known;
}

function endsHere({ tails }: Node, text: string, from: number): boolean {
  return tails.some((tail) => tail.length === 0 || stands(tail, text.slice(from).split('/').slice(1)));
}

/** Whether segments that are not empty hold the literals of a tail in its order. */
function stands(tail: Tail, segments: readonly string[]): boolean {
  let at = 0;
  return tail.every((literals) => {
    while (at < segments.length && !holds(segments[at] ?? '', literals)) at += 1;
    at += 1;
    return at <= segments.length;
  });
}

function holds(segment: string, literals: readonly string[]): boolean {
  let from = 0;
  return (
    segment !== '' &&
    literals.every((literal) => {
      const found = segment.indexOf(literal, from);
      from = found + literal.length;
      return found >= 0;
    })
  );
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
