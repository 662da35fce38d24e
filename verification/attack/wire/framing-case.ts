/** Bytes on a fresh connection, and what may come of them. */
export interface FramingCase {
  readonly name: string;
  readonly sends: string;
  /** Said one byte after the other, each in a packet of its own. */
  readonly byByte?: true;
  /** Statuses of the final answers, in order. */
  readonly answered: readonly number[];
  /** Marks of the calls that reach the merchant, in order. Default: none. */
  readonly meant?: readonly string[];
  /**
   * What becomes of the connection: `open` means that the next request on it gets its own answer.
   */
  readonly leaves: 'closed' | 'open';
  /** Places of the answers to HEAD. */
  readonly bodiless?: readonly number[];
  /** We end our half after the last byte: what is missing will not come. */
  readonly finishes?: true;
}

/** Where the number of its case stands in a mark; `numbered` puts it there. */
const NUMBER = '#000';

/** The mark of a call without a body. */
export const EMPTY = '{}';

/** The body of a call that can be told from all others at the merchant. */
export const marked = (mark: string): string => JSON.stringify({ mark: `${mark}${NUMBER}` });

/** The same text with the marks of a case: as long as before. */
export function numbered(text: string, number: number): string {
  return text.replaceAll(NUMBER, `#${String(number).padStart(3, '0')}`);
}

/** A head of these lines. */
export const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;

/** The line that calls the free resource which echoes. */
export const ECHO = 'POST /api/resources/free_echo/invoke HTTP/1.1';
export const HOST = 'Host: shop';
export const JSON_TYPE = 'Content-Type: application/json';

/** A call whose head has `lines` beside the usual ones, and behind it exactly `body`. */
export const echo = (lines: readonly string[], body = ''): string => head(ECHO, HOST, JSON_TYPE, ...lines) + body;

/** A call that is as it should be. */
export const good = (mark: string): string => echo([`Content-Length: ${marked(mark).length}`], marked(mark));

/** A body of one chunk. */
export const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

/** A whole call inside what should be a body: nobody may ever take it for one. */
export const SMUGGLED = good('smuggled');
