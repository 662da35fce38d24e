const SCHEME = /^(?:https?|ftp):\/\//i;
const SPACE = /\s/;
/** Longest host with its port, characters: the longest name of the DNS, and ":65535". */
const MAX_HOST = 253 + 6;

/**
 * The verdict of the validator's own expression for `url`, found in linear time. That one tries every colon and every @ of a text as the end
 * of user and password, anew for each other one: 50 ms for 4,096 characters. But an @ that ends them is the last one before the next slash,
 * so each of those places is tried once, with the host that follows it alone. A host too long for the DNS is none.
 */
export function urlTest(original: RegExp): (text: string) => boolean {
  return function isUrl(text) {
    const scheme = SCHEME.exec(text)?.[0];
    if (scheme === undefined) return false;
    const start = scheme.length;
    const firstSpace = indexOrEnd(text.slice(start).search(SPACE), text.length - start) + start;
    const lastSpace = lastSpaceOf(text);
    for (let from = start; from <= text.length; ) {
      const end = indexOrEnd(text.indexOf('/', from), text.length);
      // Within the piece: a search of the whole text would begin anew at every slash.
      const at = text.slice(from, end).lastIndexOf('@');
      const host = from + at + 1;
      const userIsSound = host === start || (host > start + 1 && host - 1 <= firstSpace);
      const follows = host === start || at >= 0;
      if (follows && userIsSound && lastSpace < end && end - host <= MAX_HOST)
        if (original.test(scheme + text.slice(host, end))) return true;
      from = end + 1;
    }
    return false;
  };
}

function indexOrEnd(index: number, end: number): number {
  return index === -1 ? end : index;
}

function lastSpaceOf(text: string): number {
  for (let at = text.length - 1; at >= 0; at -= 1) if (SPACE.test(text.charAt(at))) return at;
  return -1;
}
