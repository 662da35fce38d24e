/** Finds where WebSocket frames end (RFC 6455, 5.2): heads are read, payloads are skipped. */

const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASK_BYTES = 4;

/** Follows the bytes of one direction. */
export class FrameTracker {
  readonly #head: number[] = [];
  #payload = 0;

  /** Whether the bytes so far are whole frames. */
  get atBoundary(): boolean {
    return this.#head.length === 0 && this.#payload === 0;
  }

  /** Follows a whole piece. */
  follow(piece: Uint8Array): void {
    let at = 0;
    while (at < piece.length) at = this.#step(piece, at);
  }

  /** Follows a piece up to the first end of a frame; the result is how many bytes that are. */
  followToBoundary(piece: Uint8Array): number {
    let at = 0;
    while (at < piece.length) {
      at = this.#step(piece, at);
      if (this.atBoundary) break;
    }
    return at;
  }

  /** Takes some bytes from `at` on; the result is where the next ones are. */
  #step(piece: Uint8Array, at: number): number {
    if (this.#payload > 0) {
      const taken = Math.min(this.#payload, piece.length - at);
      this.#payload -= taken;
      return at + taken;
    }
    this.#head.push(piece[at] ?? 0);
    if (this.#head.length >= 2 && this.#head.length === headLength(this.#head)) {
      this.#payload = payloadLength(this.#head);
      this.#head.length = 0;
    }
    return at + 1;
  }
}

function headLength([, second = 0]: readonly number[]): number {
  const length = second & 0x7f;
  const extended = length === LENGTH_16 ? 2 : length === LENGTH_64 ? 8 : 0;
  return 2 + extended + (second & 0x80 ? MASK_BYTES : 0);
}

function payloadLength(head: readonly number[]): number {
  const length = (head[1] ?? 0) & 0x7f;
  if (length < LENGTH_16) return length;
  const bytes = head.slice(2, length === LENGTH_16 ? 4 : 10);
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}
