/** One change of one place of a source file. */
export interface Mutant {
  readonly file: string;
  /** Offsets of what is replaced, UTF-16. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** What stood there, in one line. */
  readonly was: string;
  readonly line: number;
  /** Whether all of a check or of a call is left out, not a part of it. */
  readonly whole: boolean;
  /**
   * The same after a change elsewhere in the file: file, what was there, what became of it, and
   * which of equal ones.
   */
  readonly name: string;
}

/** The file with that one change. */
export function applied(source: string, { start, end, replacement }: Mutant): string {
  return `${source.slice(0, start)}${replacement}${source.slice(end)}`;
}
