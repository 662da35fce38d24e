/** Finds raw HTML in the Markdown of documents, which no document of ACP may hold (acp 10). */

const BLANK = /^[ \t]*$/;
const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})/;
const CLOSING_FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*$/;
/** A quotation or an item of a list begins. */
const CONTAINER = /^[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$))/;
/** May be a fence inside quotations and lists. */
const NESTED_FENCE = /^(?:[ \t>]|[-+*]|\d{1,9}[.)])*(?:`{3}|~{3})/;
const URI_LINK = /<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>\p{Cc}]*>/uy;
const MAIL_LINK =
  /<[\w.!#$%&'*+/=?^`{|}~-]+@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*>/y;
const TAG_BEGIN = /[A-Za-z/!?]/;

/**
 * Whether a text has a `<` before a letter, `/`, `!` or `?` that is neither code nor an autolink,
 * by the blocks and inlines of CommonMark 0.31.2. In doubt it is text: a tag that only may be code
 * is refused. Takes linear time.
 */
export function hasRawHtml(markdown: string): boolean {
  const fences = new Fences();
  // Whether code spans can be trusted: one that was opened on an earlier line of the block may end
  // on this one.
  let certain = true;
  for (const line of markdown.split(/\r\n|\n|\r/)) {
    // A blank line ends every block that holds code spans, and no fence.
    if (BLANK.test(line) || fences.take(line)) {
      certain = true;
      continue;
    }
    const seen = scanLine(line, certain);
    if (seen === 'html') return true;
    if (seen === 'open') certain = false;
  }
  return false;
}

/** Fenced code, line by line. In lists and quotations only the fences that certainly count do. */
class Fences {
  #open: { readonly mark: string; readonly length: number } | undefined;
  #trust: 'all' | 'unindented' | 'none' = 'all';

  /** Whether a line is fenced code or a fence. */
  take(line: string): boolean {
    if (this.#open !== undefined) {
      if (closes(line, this.#open)) this.#open = undefined;
      return true;
    }
    const [, indent = '', fence] = FENCE.exec(line) ?? [];
    if (fence !== undefined && (this.#trust === 'all' || (this.#trust === 'unindented' && indent === ''))) {
      this.#open = { mark: fence.charAt(0), length: fence.length };
      return true;
    }
    const container = CONTAINER.test(line);
    if ((container || this.#trust !== 'all') && NESTED_FENCE.test(line)) this.#trust = 'none';
    else if (container && this.#trust === 'all') this.#trust = 'unindented';
    return false;
  }
}

function closes(line: string, { mark, length }: { readonly mark: string; readonly length: number }): boolean {
  const [, fence = ''] = CLOSING_FENCE.exec(line) ?? [];
  return fence.startsWith(mark) && fence.length >= length;
}

/**
 * One line of text. `open`: a code span may begin on it that does not end on it. `trusted`: false
 * where one may be open already.
 */
function scanLine(line: string, trusted: boolean): 'html' | 'open' | 'text' {
  const closers = trusted ? closersOf(line) : undefined;
  let open = false;
  let at = 0;
  while (at < line.length) {
    const char = line.charAt(at);
    if (char === '`') {
      const run = backticks(line, at);
      // An escaped run begins no span, or a shorter one: then nothing on the line is certain.
      const escaped = line.charAt(at - 1) === '\\';
      const closer = open || escaped ? undefined : closers?.get(at);
      if (closer === undefined) open = true;
      at = closer ?? at + run;
    } else if (char === '<') {
      const link = linkEnd(line, at);
      if (link === undefined && TAG_BEGIN.test(line.charAt(at + 1))) return 'html';
      at = link ?? at + 1;
    } else at += 1;
  }
  return open ? 'open' : 'text';
}

/** By the index of each run of backticks, the index behind the next run of the same length. */
function closersOf(line: string): ReadonlyMap<number, number> {
  const closers = new Map<number, number>();
  const last = new Map<number, number>();
  for (let at = line.indexOf('`'); at !== -1; ) {
    const run = backticks(line, at);
    const opener = last.get(run);
    if (opener !== undefined) closers.set(opener, at + run);
    last.set(run, at);
    at = line.indexOf('`', at + run);
  }
  return closers;
}

function backticks(line: string, start: number): number {
  let end = start;
  while (line.charAt(end) === '`') end += 1;
  return end - start;
}

function linkEnd(line: string, at: number): number | undefined {
  for (const link of [URI_LINK, MAIL_LINK]) {
    link.lastIndex = at;
    if (link.test(line)) return link.lastIndex;
  }
  return undefined;
}
