/**
 * Reads documents that are plain JSON. The YAML parser reads them as well, but takes a second and
 * 60 MB for each megabyte, and documents of thousands of resources are written by programs.
 */

/** A text, a bracket, a comma, a colon, or any other literal. */
export const LEXEME = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s{}[\]:,"]+/gs;
/** A text, and the colon that makes it the name of a member. */
const TEXT = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g;

/**
 * A JSON object none of whose members is named twice; undefined for everything else, which is the
 * YAML parser's to read, or to refuse with the line of the mistake.
 */
export function readUniqueJson(text: string): object | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isUnique = namesIn(text) === membersOf(document);
  return isUnique && document !== null && typeof document === 'object' ? document : undefined;
}

/** What may come next in a JSON text. */
type Wanted = 'value' | 'first item' | 'first name' | 'name' | 'colon' | 'comma';

/**
 * Where a text is no JSON, or names a member twice. The messages of `JSON.parse` quote the text,
 * which may hold a secret, and most of them do not say where.
 */
export function jsonFault(text: string): { readonly message: string; readonly offset: number } {
  const open: (Set<unknown> | 'list')[] = [];
  let wanted: Wanted = 'value';
  let end = 0;
  const broken = (offset: number) => ({ message: 'it is not well-formed from here on', offset });
  for (const { 0: lexeme, index } of text.matchAll(LEXEME)) {
    const between = text.slice(end, index).search(/\S/);
    if (between >= 0) return broken(end + between);
    const top = open.at(-1);
    const next = wantedBehind(lexeme, wanted, top);
    if (next === undefined) return broken(index);
    if (next === 'colon' && top instanceof Set) {
      const name: unknown = JSON.parse(lexeme);
      if (top.has(name)) return { message: 'a name stands twice in one mapping', offset: index };
      top.add(name);
    }
    if (lexeme === '{' || lexeme === '[') open.push(lexeme === '{' ? new Set() : 'list');
    if (lexeme === '}' || lexeme === ']') open.pop();
    wanted = next;
    end = index + lexeme.length;
  }
  return broken(end);
}

/** Undefined: the text is broken there. */
function wantedBehind(lexeme: string, wanted: Wanted, top: Set<unknown> | 'list' | undefined): Wanted | undefined {
  switch (wanted) {
    case 'colon':
      return lexeme === ':' ? 'value' : undefined;
    case 'name':
    case 'first name':
      if (lexeme === '}') return wanted === 'first name' ? 'comma' : undefined;
      return lexeme.startsWith('"') && isLiteral(lexeme) ? 'colon' : undefined;
    case 'comma':
      if (top === undefined) return undefined;
      if (lexeme === ',') return top === 'list' ? 'value' : 'name';
      return lexeme === (top === 'list' ? ']' : '}') ? 'comma' : undefined;
    default:
      if (lexeme === '{') return 'first name';
      if (lexeme === '[') return 'first item';
      if (lexeme === ']') return wanted === 'first item' ? 'comma' : undefined;
      return isLiteral(lexeme) ? 'comma' : undefined;
  }
}

function isLiteral(lexeme: string): boolean {
  try {
    return JSON.parse(lexeme) !== undefined;
  } catch {
    return false;
  }
}

/** How many members a well-formed JSON text writes down. */
function namesIn(text: string): number {
  let names = 0;
  for (const [, colon] of text.matchAll(TEXT)) if (colon !== undefined) names += 1;
  return names;
}

/** How many members a document has: of two with one name the parser kept the last. */
function membersOf(document: unknown): number {
  let members = 0;
  const open: unknown[] = [document];
  while (open.length > 0) {
    const value = open.pop();
    if (value === null || typeof value !== 'object') continue;
    const inner: readonly unknown[] = Object.values(value);
    if (!Array.isArray(value)) members += inner.length;
    for (const item of inner) if (typeof item === 'object') open.push(item);
  }
  return members;
}
