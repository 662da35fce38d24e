/** The result of `tools/list` in pages: their bytes, and the cursors that lead to them. */

import { createHash } from 'node:crypto';
import type { Json } from '../../json/types.ts';
import type { ListedResource } from '../../resources/listing.ts';
import type { Era } from './eras.ts';
import { type ServerInfo, toolsListResult } from './tools.ts';

/** Most tools of a page: clients that read one page only see all tools of most merchants. */
const MOST_TOOLS = 500;
/** Longest text of a page's resources, characters: a page is then made in a few milliseconds. */
const MOST_CHARACTERS = 524_288;
/** Characters of the digest in a cursor: it tells lists apart, and keeps no secret. */
const TAG_LENGTH = 12;

interface ToolPages {
  /** The JSON text of a result; undefined for a cursor that leads to no page of this list. */
  at(cursor: Json | undefined): Buffer | undefined;
}

/**
 * The pages of one list in every era. The first page is made at start, each other one when it is
 * first asked for. A cursor names the place of its page and the list, so that every process with
 * the same tools understands it, and none continues a list in another one.
 */
export function toolPages(resources: readonly ListedResource[], server: ServerInfo): Readonly<Record<Era, ToolPages>> {
  const starts = pageStarts(resources);
  const tag = starts.length > 1 ? tagOf(resources) : '';
  const cursors = starts.map((start) => `${start}-${tag}`);
  const inEra = (era: Era): ToolPages =>
    pagesOf(cursors, (at) => {
      const some = resources.slice(starts[at], starts[at + 1]);
      return toolsListResult(some, era, server, cursors[at + 1]);
    });
  return { legacy: inEra('legacy'), modern: inEra('modern') };
}

function pagesOf(cursors: readonly string[], textOf: (at: number) => string): ToolPages {
  const made: Buffer[] = [];
  const page = (at: number): Buffer => {
    made[at] ??= Buffer.from(textOf(at));
    return made[at];
  };
  page(0);
  return {
    at(cursor) {
      if (cursor === undefined) return page(0);
      // The first page has no cursor: a client begins without one.
      const at = typeof cursor === 'string' ? cursors.indexOf(cursor) : -1;
      return at < 1 ? undefined : page(at);
    },
  };
}

/** The index of each page's first resource; a list without any is one page. */
function pageStarts(resources: readonly ListedResource[]): readonly number[] {
  const starts = [0];
  let characters = 0;
  for (const [index, resource] of resources.entries()) {
    const { length } = JSON.stringify(resource);
    const start = starts.at(-1) ?? 0;
    if (index > start && (index - start === MOST_TOOLS || characters + length > MOST_CHARACTERS)) {
      starts.push(index);
      characters = 0;
    }
    characters += length;
  }
  return starts;
}

function tagOf(resources: readonly ListedResource[]): string {
  const hash = createHash('sha256');
  for (const { id } of resources) hash.update(`${id}\n`);
  return hash.digest('base64url').slice(0, TAG_LENGTH);
}
