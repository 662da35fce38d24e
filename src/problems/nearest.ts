/** Finds the name that a mistyped one in a configuration was meant to be. */

/** Most edits between a mistyped key and the one that is suggested for it. */
const MAX_EDITS = 3;
/** Longer names are not compared, characters. */
const MAX_NAME_LENGTH = 64;

/** The nearest known name, whatever its case; undefined when none is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return undefined;
  let best: { readonly name: string; readonly edits: number } | undefined;
  for (const candidate of known) {
    const edits = editDistance(name.toLowerCase(), candidate.toLowerCase());
    const bound = Math.min(MAX_EDITS, Math.ceil(candidate.length / 3));
    if (edits <= bound && (best === undefined || edits < best.edits)) best = { name: candidate, edits };
  }
  return best?.name;
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      const substituted = (row[j] ?? 0) + (char === b[j] ? 0 : 1);
      next.push(Math.min(substituted, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
