/** Longest pattern that is compiled, characters. */
export const MAX_PATTERN_LENGTH = 1_024;

/**
 * What is wrong with a `pattern`, or undefined. Patterns run without the `u` flag, because only then can V8 fall back to its linear
 * engine; so whatever would mean something else without it is refused. Look-around and back-references never fall back, and
 * nested quantifiers are where exponential time comes from: those three only with `allowSlow`.
 */
export function patternFault(pattern: string, allowSlow: boolean): string | undefined {
  if (pattern.length > MAX_PATTERN_LENGTH) return `must not be longer than ${MAX_PATTERN_LENGTH} characters`;
  if (/[\ud800-\udfff]/.test(pattern)) return 'must not have characters beyond U+FFFF';
  if (/(?:^|[^\\])(?:\\\\)*\\(?:[pP]\{|u\{)/.test(pattern))
    return 'must not use \\p{…} or \\u{…}, which need Unicode mode';
  try {
    new RegExp(pattern);
  } catch {
    return 'must be a regular expression (ECMAScript)';
  }
  const slow = allowSlow ? undefined : slowConstruct(pattern);
  return slow && `must not use ${slow}: it may take very long on hostile text (allowSlowPattern: true accepts it)`;
}

type SlowConstruct = 'look-around' | 'a back-reference' | 'nested quantifiers';

/** One pass over a pattern that is known to be well formed. */
function slowConstruct(pattern: string): SlowConstruct | undefined {
  /** For each open group, outermost first: does it repeat something a variable number of times? */
  const groups: boolean[] = [false];
  let at = 0;
  while (at < pattern.length) {
    const char = pattern[at];
    let repeatsInside = false;
    if (char === '(') {
      if (/^\(\?(?:<?[=!])/.test(pattern.slice(at, at + 4))) return 'look-around';
      groups.push(false);
      at += /^\(\?(?:<[^>]*>|[a-z-]*:)|^\(/.exec(pattern.slice(at))?.[0].length ?? 1;
      continue;
    }
    if (char === '\\') {
      if (/[1-9k]/.test(pattern[at + 1] ?? '')) return 'a back-reference';
      at += 2;
    } else if (char === '[') at = classEnd(pattern, at);
    else {
      if (char === ')') repeatsInside = groups.pop() ?? false;
      at += 1;
    }
    const quantifier = readQuantifier(pattern, at);
    at += quantifier.length;
    if (repeatsInside && quantifier.max > 1) return 'nested quantifiers';
    if (repeatsInside || quantifier.variable) groups[groups.length - 1] = true;
  }
  return undefined;
}

function classEnd(pattern: string, start: number): number {
  let at = start + 1;
  while (at < pattern.length && pattern[at] !== ']') at += pattern[at] === '\\' ? 2 : 1;
  return at + 1;
}

interface Quantifier {
  readonly length: number;
  readonly max: number;
  /** Repeats, and not a fixed number of times. */
  readonly variable: boolean;
}

function readQuantifier(pattern: string, at: number): Quantifier {
  const match = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(pattern.slice(at, at + 32));
  if (match === null) return { length: 0, max: 1, variable: false };
  const [text, low, comma, high] = match;
  if (text.startsWith('?')) return { length: text.length, max: 1, variable: false };
  if (low === undefined) return { length: text.length, max: Number.POSITIVE_INFINITY, variable: true };
  const max = comma === '' ? Number(low) : high === '' ? Number.POSITIVE_INFINITY : Number(high);
  return { length: text.length, max, variable: max > 1 && max !== Number(low) };
}
