/** The relative links of documents. */

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** A link or a picture: its file, its heading, or both. */
const LINK = /\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)/g;

/** Those that lead to no file, folder or heading, as `document: target`. */
export function brokenLinks(documents: readonly string[]): readonly string[] {
  return documents.flatMap((document) =>
    [...readFileSync(document, 'utf8').matchAll(LINK)]
      .filter(([, target = '', anchor]) => {
        const linked = target === '' ? document : path.join(path.dirname(document), target);
        if (!existsSync(linked)) return true;
        return anchor !== undefined && linked.endsWith('.md') && !anchorsOf(linked).has(anchor);
      })
      .map(([, target, anchor]) => `${document}: ${target}${anchor === undefined ? '' : `#${anchor}`}`),
  );
}

/** What the headings of a document are linked by. */
function anchorsOf(file: string): ReadonlySet<string> {
  return new Set(
    [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}
