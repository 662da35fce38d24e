/**
 * Reads a pattern into the tree that `linear.ts` rewrites. The grammar is that of ECMAScript
 * without the flag `u`. What a linear engine cannot run, or what has another meaning with the flag,
 * is refused with a message that names a replacement.
 */

/** A pattern without captures. */
export type PatternNode =
  /** Consumes one UTF-16 code unit; the engine compares it with at most `ranges` ranges. */
  | { readonly kind: 'one'; readonly text: string; readonly ranges: number }
  | { readonly kind: 'assertion'; readonly text: '^' | '$' | '\\b' | '\\B' }
  | { readonly kind: 'sequence'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly branches: readonly PatternNode[] }
  | { readonly kind: 'repeat'; readonly body: PatternNode; readonly min: number; readonly max: number };

/** Why a pattern is refused; the message completes "pattern …". */
export class PatternRefusal extends Error {}

/** Longest pattern, UTF-16 code units; this also bounds the depth of its groups. */
const MAX_PATTERN_LENGTH = 1_024;

const INSTEAD = 'split it into two properties, or use minLength and maxLength beside a simpler pattern';
const UNICODE_MODE =
  'must not use \\p{…} or \\u{…}, which need Unicode mode: list the characters in a class, such as [A-Za-zÀ-ÿ]';
const LOOK_AROUND = /^\(\?<?[=!]/;
const GROUP = /^\((?:\?:|\?<[^>]*>|(?!\?))/;
const QUANTIFIER = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/;
const MEMBER = /^(?:\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[\s\S])|[\s\S])/;
const SURROGATE = /[\ud800-\udfff]|\\u[dD][89a-fA-F]/;
/** How many ranges of code units `\d` and its likes have. */
const ESCAPED_CLASSES: Readonly<Record<string, number>> = { d: 1, D: 2, w: 4, W: 5, s: 10, S: 11 };

/** @throws PatternRefusal */
export function readPattern(pattern: string): PatternNode {
  if (pattern.length > MAX_PATTERN_LENGTH)
    throw new PatternRefusal(`must not be longer than ${MAX_PATTERN_LENGTH} characters`);
  if (SURROGATE.test(pattern)) throw new PatternRefusal('must not have characters beyond U+FFFF');
  try {
    new RegExp(pattern);
  } catch {
    throw new PatternRefusal('must be a regular expression (ECMAScript)');
  }
  return new Reader(pattern).read();
}

/** Reads a well-formed pattern. */
class Reader {
  readonly #pattern: string;
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  read(): PatternNode {
    const node = this.#choice();
    // An unmatched closing parenthesis is a syntax error without the flag, too.
    if (this.#at < this.#pattern.length) throw new PatternRefusal('must be a regular expression (ECMAScript)');
    return node;
  }

  #choice(): PatternNode {
    const branches = [this.#sequence()];
    while (this.#next() === '|') {
      this.#at += 1;
      branches.push(this.#sequence());
    }
    return branches.length === 1 && branches[0] !== undefined ? branches[0] : { kind: 'choice', branches };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#at < this.#pattern.length && this.#next() !== '|' && this.#next() !== ')')
      parts.push(this.#quantified(this.#term()));
    return { kind: 'sequence', parts };
  }

  #quantified(body: PatternNode): PatternNode {
    const match = QUANTIFIER.exec(this.#pattern.slice(this.#at));
    if (match === null) return body;
    this.#at += match[0].length;
    const [text, low, comma, high] = match;
    if (low === undefined) {
      const max = text.startsWith('?') ? 1 : Number.POSITIVE_INFINITY;
      return { kind: 'repeat', body, min: text.startsWith('+') ? 1 : 0, max };
    }
    const max = comma === '' ? Number(low) : high === '' ? Number.POSITIVE_INFINITY : Number(high);
    return { kind: 'repeat', body, min: Number(low), max };
  }

  #term(): PatternNode {
    const char = this.#next();
    if (char === '(') return this.#group();
    if (char === '[') return this.#class();
    if (char === '\\') return this.#escape();
    this.#at += 1;
    if (char === '^' || char === '$') return { kind: 'assertion', text: char };
    return { kind: 'one', text: char, ranges: char === '.' ? 4 : 1 };
  }

  #group(): PatternNode {
    const rest = this.#pattern.slice(this.#at);
    if (LOOK_AROUND.test(rest)) throw new PatternRefusal(`must not use look-around: ${INSTEAD}`);
    const opening = GROUP.exec(rest)?.[0];
    if (opening === undefined)
      throw new PatternRefusal('must not use modifiers such as (?i:…): write both cases, as in [Aa]');
    this.#at += opening.length;
    const inner = this.#choice();
    this.#at += 1;
    return inner;
  }

  #class(): PatternNode {
    const start = this.#at;
    // The complement of a class has at most one range more than the class.
    let ranges = 1;
    this.#at += this.#ahead(2) === '[^' ? 2 : 1;
    while (this.#next() !== ']') {
      const first = this.#member();
      ranges += first;
      if (this.#next() !== '-' || this.#ahead(2) === '-]') continue;
      this.#at += 1;
      const last = this.#member();
      // Without the `u` flag `[\w-.]` is three members.
      if (first > 1 || last > 1) ranges += last + 1;
    }
    this.#at += 1;
    return { kind: 'one', text: this.#pattern.slice(start, this.#at), ranges };
  }

  /** Skips one member of a class and gives the number of its ranges. */
  #member(): number {
    const ahead = this.#ahead(6);
    if (/^\\(?:[pP]|u\{)/.test(ahead)) throw new PatternRefusal(UNICODE_MODE);
    const text = MEMBER.exec(ahead)?.[0] ?? ahead;
    this.#at += text.length;
    return ESCAPED_CLASSES[text.slice(1)] ?? 1;
  }

  #escape(): PatternNode {
    const ahead = this.#ahead(6);
    if (/^\\(?:[pP]|u\{)/.test(ahead)) throw new PatternRefusal(UNICODE_MODE);
    if (/^\\[1-9k]/.test(ahead)) throw new PatternRefusal(`must not use a back-reference: ${INSTEAD}`);
    if (/^\\0\d/.test(ahead)) throw new PatternRefusal('must not use an octal escape: write \\x00 to \\x3f');
    if (/^\\c(?![A-Za-z])/.test(ahead)) throw new PatternRefusal('must not have \\c without a letter: write \\\\c');
    if (/^\\[bB]/.test(ahead)) {
      this.#at += 2;
      return { kind: 'assertion', text: ahead.startsWith('\\b') ? '\\b' : '\\B' };
    }
    const text = MEMBER.exec(ahead)?.[0] ?? ahead;
    this.#at += text.length;
    return { kind: 'one', text, ranges: ESCAPED_CLASSES[text.slice(1)] ?? 1 };
  }

  #next(): string {
    return this.#pattern[this.#at] ?? '';
  }

  #ahead(length: number): string {
    return this.#pattern.slice(this.#at, this.#at + length);
  }
}
