/** Checks published texts for hidden characters, which can carry instructions past a reader. */

/** Control characters, bidirectional and zero-width ones, the byte order mark, the tag alphabet. */
const HIDDEN = /[\p{Cc}\p{Cf}\u2028\u2029\u{e0000}-\u{e007f}]/u;
/** Allowed all the same: newline, tab, and joiners that several scripts and emoji need. */
const JOINERS = /\n|\t|\u00ad|\u200c|\u200d/g;

/** What is wrong with a published text, or undefined. */
export function textFault(text: string): string | undefined {
  if (!text.isWellFormed()) return 'must be well-formed Unicode (it has half a surrogate pair)';
  return HIDDEN.test(text.replace(JOINERS, ''))
    ? 'must not have control, bidirectional or invisible characters'
    : undefined;
}
