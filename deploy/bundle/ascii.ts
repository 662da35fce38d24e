/** The bundler plugin that spells comments in ASCII, which halves the memory of the bundle. */

import type { Plugin } from 'rolldown';
import { parseSync } from 'rolldown/utils';

/** With one of them Node holds the whole bundle at two bytes a character: 9 MB more a process. */
const BEYOND_ASCII = /[^\0-\x7f]/g;

/**
 * Escapes what `output.charset` leaves as it is: the characters of comments, which stay for their
 * licences. Code that must keep its spelling (a tagged template) costs memory only, so the build
 * warns of it.
 */
export function asciiComments(): Plugin {
  return {
    name: 'ascii-comments',
    renderChunk(code, { fileName }) {
      let plain = '';
      let end = 0;
      for (const comment of parseSync(fileName, code).comments) {
        plain += code.slice(end, comment.start) + spelled(code.slice(comment.start, comment.end));
        end = comment.end;
      }
      plain += code.slice(end);
      const left = plain.match(BEYOND_ASCII)?.length ?? 0;
      if (left > 0) this.warn(`${fileName} holds ${left} characters beyond ASCII: it takes twice the memory`);
      return { code: plain, map: null };
    },
  };
}

function spelled(comment: string): string {
  return comment.replace(BEYOND_ASCII, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
