/**
 * Keeps sold operations from free calls: decides from the raw target of a request whether it may
 * pass to the backend, is one of the guarded paths, or cannot be told apart from one. Stands before
 * the proxy of all requests that no route of the gateway takes.
 *
 * Servers read paths differently (case, slashes, dot segments, escapes, path parameters), and the
 * gateway cannot know which of them the merchant runs. So a path that some server would take for a
 * guarded one never passes, in whatever spelling, and every other path passes with the bytes of its
 * target unchanged (contract 7.4).
 */

import { templatePath } from '../resources/url-template.ts';

/** The verdict on a target. */
type Passage<Guarded> =
  | { readonly kind: 'pass' }
  /** The target spells these paths plainly; its method does not count. */
  | { readonly kind: 'held'; readonly owners: readonly Guarded[] }
  | { readonly kind: 'refused'; readonly reason: RefusedTarget };

/**
 * `target`: no server should be sent it. `ambiguous`: some server reads it as the path of a guarded
 * operation.
 */
export type RefusedTarget = 'target' | 'ambiguous';

/** A path that is guarded, as it is configured (`/reports/{city}`); its query does not count. */
interface GuardedPath {
  readonly template: string;
  /** Whether everything below it is guarded as well. */
  readonly below?: boolean;
}

/** Longest target that is looked at, characters; servers refuse more than 8 to 16 KiB. */
const MAX_TARGET_LENGTH = 8_192;
/** How often a path may have been encoded: proxies and frameworks decode a decoded path again. */
const DECODINGS = 3;
const VISIBLE = /^\/[\x21-\x7e]*$/;
/** Escapes, and forms that servers resolve differently: `;`, double slashes, dot segments. */
const ODD = /%|;|\/\/|\/\.{1,2}(?:\/|$)/;
/** Characters that no escape may stand for: servers that decode early read another path. */
const UNSAFE = /[/\\.%;?#\p{Cc}]/u;
/** A dot segment behind which servers may trim spaces. */
const PADDED_DOTS = /\/\.{1,2}\s+(?:\/|$)/;
const ESCAPE = /%[0-9a-f]{2}/gi;
/** A slash or a backslash, encoded once or more. */
const SEPARATOR_ESCAPE = /%(?:25)*(?:2f|5c)/i;
const SEPARATOR_ESCAPES = new RegExp(SEPARATOR_ESCAPE, 'gi');
/** Characters that folding may change. */
const UNFOLDED = /[A-Z\u0080-\uffff]/;
/** Escapes of Windows for characters that one byte cannot hold. */
const UNIT_ESCAPE = /%u([0-9a-f]{4})/gi;
/** Bytes of one letter in UTF-8, overlong forms included. */
const SEQUENCE = /[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}/g;
/** The lower case of a capital that some servers take for I. */
const DOTTED_I = 'i\u0307';
/** Compiles the guard of some paths. Without paths every well-formed target passes. */
export function createPathGuard<Guarded extends GuardedPath>(
  paths: readonly Guarded[],
): (target: string) => Passage<Guarded> {
  // For plain spellings: fits whole folded paths, less spaces and dots that servers trim.
  const ownersAt = createPathTrie(
    paths.map((owner) => ({ segments: foldedSegments(owner.template), below: owner.below, owner })),
    true,
  );
  // For odd spellings: finds all literal segments in their order, anywhere in a folded path.
  const mayName = createLiteralOrder(paths.map(({ template }) => ({ literals: literalSegments(template) })));
  return function judge(target) {
    if (target.length > MAX_TARGET_LENGTH || !VISIBLE.test(target)) return { kind: 'refused', reason: 'target' };
    const mark = target.indexOf('?');
    const path = mark < 0 ? target : target.slice(0, mark);
    if (path.includes('\\') || target.includes('#')) return { kind: 'refused', reason: 'target' };
    if (paths.length === 0) return { kind: 'pass' };
    const once = ODD.test(path) ? readEscapes(path) : path;
    if (once === undefined)
      return mayName(decodeAll(path)) ? { kind: 'refused', reason: 'ambiguous' } : { kind: 'pass' };
    const owners = ownersAt(fold(once));
    return owners.length === 0 ? { kind: 'pass' } : { kind: 'held', owners };
  };
}

/** Whether some server may find a `.` or `..` segment in a path, however often it decodes it. */
export function hasDotSegment(path: string): boolean {
  return /(?:^|\/)\.{1,2}[\s\p{Cc}]*(?:[/;]|$)/u.test(decodeAll(path));
}

/** Whether a template has a literal segment: guarding one that has none refuses all odd paths. */
export function hasLiteral(template: string): boolean {
  return literalSegments(template).length > 0;
}

/** The segments of a template, folded, each as the literals around its parameters. */
export function foldedSegments(template: string): readonly (readonly string[])[] {
  const segments = templatePath(template).replace(/\/$/, '').split('/').slice(1);
  return segments.flatMap(segmentLiterals);
}

/** The literals of a segment, folded; an encoded slash makes two segments of it. */
function segmentLiterals(segment: string): readonly (readonly string[])[] {
  const found: string[][] = [[]];
  for (const literal of segment.split(/\{[^{}]*\}/)) {
    const [first = '', ...others] = fold(decode(literal)).split('/');
    found.at(-1)?.push(first);
    for (const other of others) found.push([other]);
  }
  return found;
}

/** The segments of a template that have no parameter, folded. */
function literalSegments(template: string): readonly string[] {
  return foldedSegments(template).filter(isLiteral).flat();
}

/** Whether a folded segment has a text and no parameter. */
export function isLiteral(segment: readonly string[]): boolean {
  return segment.length === 1 && segment[0] !== '';
}

/**
 * The path with its escapes read once; undefined where servers may read it in more than one way: an
 * escape that is broken, or stands for a control character, a separator, a dot or another escape,
 * also after the normalisation of its letters, or trails a dot segment as a space.
 */
function readEscapes(path: string): string | undefined {
  if (/;|\/\/|\/\.{1,2}(?:\/|$)/.test(path) || /%(?![0-9a-f]{2})/i.test(path)) return undefined;
  const escaped = path.match(ESCAPE)?.join('') ?? '';
  const letters = decodeUtf8(escaped);
  if (letters === undefined || UNSAFE.test(letters.normalize('NFKC'))) return undefined;
  const once = decodeUtf8(path);
  return once === undefined || PADDED_DOTS.test(once) ? undefined : once;
}

/** Decoded as often as servers may do it, backslashes as slashes, folded. */
export function decodeAll(path: string): string {
  let text = path;
  if (!text.includes('%')) return fold(text).replaceAll('\\', '/');
  for (let round = 0; round < DECODINGS; round += 1) text = decode(text).normalize('NFKC');
  return fold(text).replaceAll('\\', '/');
}

/**
 * Readings of a path: `decodeAll`, and for each smaller number of decodings one reading in which
 * separators that are still escaped separate nothing.
 */
export function readings(path: string): readonly string[] {
  const found = [decodeAll(path)];
  let text = path;
  for (let round = 0; round < DECODINGS && SEPARATOR_ESCAPE.test(text); round += 1) {
    found.push(decodeAll(text.replaceAll(SEPARATOR_ESCAPES, '-')));
    text = decode(text).normalize('NFKC');
  }
  return found;
}

/**
 * Decodes escapes as UTF-8, overlong forms included, other escaped bytes as Latin-1, and `%u`
 * escapes as their code unit; other text stays as it is.
 */
function decode(text: string): string {
  return text
    .replace(UNIT_ESCAPE, (_escape, unit: string) => String.fromCharCode(Number.parseInt(unit, 16)))
    .replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => decodeUtf8(escapes) ?? decodeLoosely(escapes));
}

function decodeUtf8(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function decodeLoosely(escapes: string): string {
  const bytes = Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('latin1');
  return bytes.replace(SEQUENCE, (sequence) => {
    const continued = sequence.length - 1;
    let point = sequence.charCodeAt(0) & (0x3f >> continued);
    for (let at = 1; at <= continued; at += 1) point = (point << 6) | (sequence.charCodeAt(at) & 0x3f);
    return point > 0x10ffff ? sequence : String.fromCodePoint(point);
  });
}

/**
 * Letters as servers compare them: compatible forms are one, and so are those that are alike in
 * upper or in lower case.
 */
function fold(text: string): string {
  if (!UNFOLDED.test(text)) return text;
  return text.normalize('NFKC').toUpperCase().toLowerCase().replaceAll(DOTTED_I, 'i');
}

/** Characters that servers take for the end of a literal segment, after all decodings. */
const TERMINATOR = /[/;?#.\s\p{Cc}]/u;

interface Node {
  readonly next: Map<string, Node>;
  /** For each path whose last literal is this node: the segments that must still follow. */
  readonly tails: Tail[];
}

/** Segments with parameters, each as the literals around them. */
type Tail = readonly (readonly string[])[];

/** A guarded path. */
interface LiteralPath {
  /** Its literal segments, folded, none empty or with a slash. */
  readonly literals: readonly string[];
  /** Segments that must stand behind them in this order; others may stand between. */
  readonly tail?: Tail;
}

/**
 * Compiles whether the literal segments of some guarded path stand in a text in their order,
 * however many paths are guarded. For paths that servers read in different ways.
 */
export function createLiteralOrder(paths: readonly LiteralPath[]): (text: string) => boolean {
  const root: Node = { next: new Map(), tails: [] };
  for (const { literals, tail = [] } of paths) literals.reduce<Node>(nextOf, root).tails.push(tail);
  const all = paths.flatMap(({ literals }) => literals);
  const known = new Set(all);
  const longest = Math.max(0, ...new Set(all.map(({ length }) => length)));
  return function occursInOrder(text) {
    if (endsHere(root, text, 0)) return true;
    const places = placesOf(known, longest, text);
    // Each literal is taken at its first place, which leaves the most text to the others.
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

/** Places of the slash before each known literal, in ascending order. */
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

/** A template as the literals of its segments: `['a']` for `a`, `['', '.csv']` for `{x}.csv`. */
interface TemplatePath<Owner> {
  readonly segments: readonly (readonly string[])[];
  /** Whether everything below it fits as well. */
  readonly below?: boolean | undefined;
  readonly owner: Owner;
}

interface Found<Owner> {
  /** The place of its template in the list. */
  readonly index: number;
  readonly owner: Owner;
}

interface TrieNode<Owner> {
  /** Literal segments by their text, without trailing spaces and dots if `trims` is set. */
  readonly literals: Map<string, TrieNode<Owner>>;
  /** Segments with parameters, by their literals. */
  readonly patterns: Map<string, { readonly literals: readonly string[]; readonly node: TrieNode<Owner> }>;
  readonly here: Found<Owner>[];
  readonly below: Found<Owner>[];
}

/**
 * Compiles the search for the owners of all templates that a path fits, in the order of the list.
 * It goes segment by segment, so that thousands of templates cost no more than a few. `trims`:
 * spaces and dots behind a segment, and a last segment of them alone, do not count.
 */
export function createPathTrie<Owner>(
  paths: readonly TemplatePath<Owner>[],
  trims: boolean,
): (path: string) => readonly Owner[] {
  const keyOf = trims ? trimmed : (segment: string): string => segment;
  const childOf = ({ literals, patterns }: TrieNode<Owner>, segment: readonly string[]): TrieNode<Owner> => {
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
    const descend = (node: TrieNode<Owner>, at: number): void => {
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

function nodeOf<Owner>(): TrieNode<Owner> {
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

/** Removes trailing spaces and dots. A regular expression would try each of a long row. */
function trimmed(segment: string): string {
  let end = segment.length;
  while (end > 0 && (segment[end - 1] === ' ' || segment[end - 1] === '.')) end -= 1;
  return end === segment.length ? segment : segment.slice(0, end);
}
