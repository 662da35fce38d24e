import type { Plugin } from 'rolldown';
import { parseSync } from 'rolldown/utils';

/**
 * One such character, and Node holds the whole bundle with two bytes for each: 9 MB more in every
 * process.
 */
const BEYOND_ASCII = /[^\0-\x7f]/g;

/**
 * Spells what `output.charset` leaves as it is: the characters of comments, which stay for their
 * licences. Code that must keep its spelling (a tagged template) only costs memory, so the build
 * says so and goes on.
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
