/**
 * Text that agents and people will read must show what it is: control characters, characters that
 * reverse or hide text (bidi, zero width, byte order mark) and the invisible tag alphabet can
 * smuggle instructions past a reader. Newline and tab are fine.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\u2028\u2029\u{e0000}-\u{e007f}]/u;
/** Joins and separates letters in several scripts and in emoji: visible text needs them. */
const JOINERS = /\n|\t|\u00ad|\u200c|\u200d/g;

/** What is wrong with a published text, or undefined. */
export function textFault(text: string): string | undefined {
  if (!text.isWellFormed()) return 'must be well-formed Unicode (it has half a surrogate pair)';
  return HIDDEN.test(text.replace(JOINERS, ''))
    ? 'must not have control, bidirectional or invisible characters'
    : undefined;
}
