/** Lines and columns of a text. */

/** A place, and the bounds of its line. */
export interface Spot {
  readonly offset: number;
  readonly line: number;
  readonly column: number;
  readonly start: number;
  readonly end: number;
}

/** The lines of a text, for many offsets. */
export class Lines {
  readonly #text: string;
  readonly #starts: readonly number[];

  constructor(text: string) {
    const starts = [0];
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
    this.#text = text;
    this.#starts = starts;
  }

  spot(offset: number): Spot {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    const start = this.#starts[low] ?? 0;
    const end = (this.#starts[low + 1] ?? this.#text.length + 1) - 1;
    return { offset, line: low + 1, column: offset - start + 1, start, end };
  }
}
