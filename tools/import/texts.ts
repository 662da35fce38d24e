/** Names and descriptions of a foreign document, in the form that a configuration takes. */

import { textFault } from '../../src/resources/schemas/schema-check.ts';

/** Longest description of a property, characters: a model pays for each of them. */
export const LONGEST_NOTE = 300;
export const LONGEST_NAME = 200;
export const LONGEST_DESCRIPTION = 2_000;

/**
 * The text without hidden characters, markup of HTML and repeated space, cut at a word. `${` would
 * be a placeholder of the configuration, which reads secrets.
 */
export function plainText(text: string, longest: number): string {
  const shown = text
    .slice(0, 10 * longest)
    .toWellFormed()
    .replace(/<\/?[a-z][^<>]*>/gi, ' ')
    .replaceAll(/\$(?=\{)/g, '$ ')
    .split(/\s+/)
    .map((word) => (textFault(word) === undefined ? word : word.replace(/[\p{Cc}\p{Cf}\u{e0000}-\u{e007f}]/gu, '')))
    .filter((word) => word !== '')
    .join(' ');
  if (shown.length <= longest) return shown;
  const cut = shown.slice(0, longest - 1).toWellFormed();
  const space = cut.lastIndexOf(' ');
  return `${space > longest / 2 ? cut.slice(0, space) : cut}…`;
}
