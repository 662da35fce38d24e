const MS = 1_000;

/**
 * When to ask again about something that runs, whole seconds: as long as it has run already, which grows like a back-off, but not beyond
 * its end. At least 1. `ageMs`: since it began; `leftMs`: how long it may still take.
 */
export function retryAfterS(ageMs: number, leftMs: number): number {
  return Math.max(1, Math.min(Math.ceil(ageMs / MS), Math.ceil(leftMs / MS)));
}
