/** Bytes on a fresh connection, and the expected answers. */
export interface FramingCase {
  readonly name: string;
  readonly sends: string;
  /** Sent one byte at a time, each in a packet of its own. */
  readonly byByte?: true;
  /** Statuses of the final answers, in order. */
  readonly answered: readonly number[];
  /** Marks of the calls that reach the backend, in order. Default: none. */
  readonly meant?: readonly string[];
  /** The connection afterwards: `open` means that the next request on it gets its own answer. */
  readonly leaves: 'closed' | 'open';
  /** Positions of the answers to HEAD. */
  readonly bodiless?: readonly number[];
  /** Ends our half after the last byte. */
  readonly finishes?: true;
}

/** The part of a mark that `numbered` replaces by the number of its case. */
const NUMBER = '#000';

/** The mark of a call without a body. */
export const EMPTY = '{}';

/** The body of a call, distinct from all others at the backend. */
export const marked = (mark: string): string => JSON.stringify({ mark: `${mark}${NUMBER}` });

/** The same text with the marks of a case: as long as before. */
export function numbered(text: string, number: number): string {
  return text.replaceAll(NUMBER, `#${String(number).padStart(3, '0')}`);
}

/** A head of these lines. */
export const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;

/** The request line that calls the free echoing resource. */
export const ECHO = 'POST /api/resources/free_echo/invoke HTTP/1.1';
export const HOST = 'Host: shop';
export const JSON_TYPE = 'Content-Type: application/json';

/** A call whose head has `lines` beside the usual ones, and behind it exactly `body`. */
export const echo = (lines: readonly string[], body = ''): string => head(ECHO, HOST, JSON_TYPE, ...lines) + body;

/** A valid call. */
export const good = (mark: string): string => echo([`Content-Length: ${marked(mark).length}`], marked(mark));

/** A body of one chunk. */
export const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

/** A whole call inside a body: it must never be served as a call. */
export const SMUGGLED = good('smuggled');
