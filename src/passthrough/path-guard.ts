/**
 * Keeps what is sold from being reached for nothing: decides from the raw target of a request
 * whether it may pass to the backend, is one of the guarded paths, or cannot be told apart from
 * one. Stands before the proxy of everything that no route of the gateway takes.
 *
 * Servers read paths differently (case, slashes, dot segments, escapes, path parameters), and the
 * gateway cannot know which of them the merchant runs. So a path that some server would take for a
 * guarded one never passes, in whatever spelling, and every other path passes with the bytes of its
 * target unchanged (contract 7.4).
 */

import { templatePath } from '../resources/url-template.ts';
import { createLiteralOrder } from './literal-order.ts';
import { createPathTrie } from './path-trie.ts';

/** What may be done with a target. */
type Passage<Owner> =
  | { readonly kind: 'pass' }
  /** The path of guarded operations, whatever the method; spelled plainly. */
  | { readonly kind: 'held'; readonly owners: readonly Owner[] }
  | { readonly kind: 'refused'; readonly reason: RefusedTarget };

/**
 * `target`: no server should be sent it. `ambiguous`: some server reads it as the path of a guarded
 * operation.
 */
export type RefusedTarget = 'target' | 'ambiguous';

/** A path that is guarded, as it is configured (`/reports/{city}`); its query does not count. */
interface GuardedPath<Owner> {
  readonly template: string;
  /** Whether everything below it is guarded as well. */
  readonly below?: boolean;
  readonly owner: Owner;
}

/** Longest target that is looked at, characters; servers refuse more than 8 to 16 KiB. */
const MAX_TARGET_LENGTH = 8_192;
/** How often a path may have been encoded: proxies and frameworks decode again what was decoded. */
const DECODINGS = 3;
const VISIBLE = /^\/[\x21-\x7e]*$/;
/** Neither escapes nor anything that servers resolve differently. */
const ODD = /%|;|\/\/|\/\.{1,2}(?:\/|$)/;
/** What an escape must not stand for: servers that decode it early read another path. */
const UNSAFE = /[/\\.%;?#\p{Cc}]/u;
/** A dot segment for servers that trim it first. */
const PADDED_DOTS = /\/\.{1,2}\s+(?:\/|$)/;
const ESCAPE = /%[0-9a-f]{2}/gi;
/** A slash or a backslash, encoded once or more. */
const SEPARATOR_ESCAPE = /%(?:25)*(?:2f|5c)/i;
const SEPARATOR_ESCAPES = new RegExp(SEPARATOR_ESCAPE, 'gi');
/** What folding may change. */
const UNFOLDED = /[A-Z\u0080-\uffff]/;
/** How Windows escapes what one byte cannot hold. */
const UNIT_ESCAPE = /%u([0-9a-f]{4})/gi;
/** Bytes of one letter in UTF-8, whether or not fewer would do. */
const SEQUENCE = /[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}/g;
/** The lower case of a capital that some servers take for I. */
const DOTTED_I = 'i\u0307';
/** The guard of some paths. With none of them every well-formed target passes. */
export function createPathGuard<Owner>(paths: readonly GuardedPath<Owner>[]): (target: string) => Passage<Owner> {
  // The whole folded path, spelled plainly; servers trim spaces and dots, a parameter may be empty.
  const ownersAt = createPathTrie(
    paths.map(({ template, ...path }) => ({ ...path, segments: foldedSegments(template) })),
    { trims: true },
  );
  // All literal segments in their order, wherever they are in a folded path.
  const mayName = createLiteralOrder(
    paths.map(({ template }) => ({ literals: literalSegments(templatePath(template)) })),
  );
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

/** Whether some literal of a path is guarded: without one every odd path is refused. */
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
  return template
    .split('/')
    .filter((segment) => segment !== '' && !segment.includes('{'))
    .flatMap((segment) => fold(decode(segment)).split('/'))
    .filter((literal) => literal !== '');
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

/** The same for each number of decodings: separators that are left stay in their segments. */
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
 * Escapes as UTF-8, also in forms that are too long; bytes that are none as Latin-1, `%u` escapes
 * as their code unit, and what is no escape as it stands.
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
