import { converse } from './conversation.ts';
import { HOST, head } from './framing-case.ts';

/** How often a block is looked for again: what the machine did once does not come three times, what an input does comes always. */
const LOOKS = 3;
/** An input may block for long; then the figure says so, and not this. */
const PATIENCE_MS = 60_000;

/**
 * How long these bytes keep everybody else waiting, milliseconds: the time that /health takes, asked on another connection right behind
 * them. The least of some looks.
 */
export async function blockedBy(url: string, bytes: Buffer): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < LOOKS && least > 1; look += 1) least = Math.min(least, await lookOnce(url, bytes));
  return least;
}

async function lookOnce(url: string, bytes: Buffer): Promise<number> {
  const [hostile, other] = await Promise.all([converse(url), converse(url)]);
  try {
    const asked = performance.now();
    hostile.say(bytes);
    other.say(head('GET /health HTTP/1.1', HOST));
    await other.until(1, PATIENCE_MS);
    const waited = performance.now() - asked;
    await hostile.until(1, PATIENCE_MS);
    // Asked again while the first answer was still being made: the other connection may have come first.
    return Math.max(waited, hostile.ended() ? 0 : performance.now() - asked);
  } finally {
    hostile.close();
    other.close();
  }
}
