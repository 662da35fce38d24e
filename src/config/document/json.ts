/**
 * Reads documents that are plain JSON. The YAML parser reads them as well, but takes a second and
 * 60 MB for each megabyte, and documents of thousands of resources are written by programs.
 */

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
