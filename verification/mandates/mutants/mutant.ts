/** One change of a source file: what `sites.ts` finds, and trials apply. */

/** A part of a file and its replacement. */
export interface Mutant {
  readonly file: string;
  /** Offsets of the replaced text, UTF-16. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** The replaced text, in one line. */
  readonly was: string;
  readonly line: number;
  /** Whether all of a check or of a call is left out, not a part of it. */
  readonly whole: boolean;
  /** File, old and new text, and a number for equal ones: it survives changes elsewhere. */
  readonly name: string;
}

/** The file with that one change. */
export function applied(source: string, { start, end, replacement }: Mutant): string {
  return `${source.slice(0, start)}${replacement}${source.slice(end)}`;
}
