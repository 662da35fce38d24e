/** Ids, names and descriptions of resources. */

import type { JsonObject } from '../../src/json/json.ts';
import type { Operation } from './operations.ts';
import { LONGEST_DESCRIPTION, LONGEST_NAME, plainText } from './texts.ts';

/** Longer ids are legal, but many models cannot call a tool of such a name. */
const LONGEST_ID = 64;

/** Names operations one after the other: an id is given once. */
export function idsForOperations(): (operation: Pick<Operation, 'id' | 'method' | 'path'>) => string {
  const used = new Set<string>();
  return ({ id, method, path }) => {
    const wanted = legal(id ?? '') || legal(`${method.toLowerCase()}${path}`) || method.toLowerCase();
    let free = wanted.slice(0, LONGEST_ID);
    for (let next = 2; used.has(free); next += 1) {
      const suffix = `_${next}`;
      free = wanted.slice(0, LONGEST_ID - suffix.length) + suffix;
    }
    used.add(free);
    return free;
  };
}

/** Letters, digits, `_` and `-`: what every model takes as the name of a tool. */
function legal(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]+/g, '_').replaceAll(/^_+|_+$/g, '');
}

/** The summary, else the operationId, else method and path; a description only if it says more. */
export function textsOf({ id, label, place }: Operation): { readonly name: string; readonly description?: string } {
  const summary = textOf(place.value, 'summary', LONGEST_NAME);
  const name = summary || plainText(id ?? '', LONGEST_NAME) || plainText(label, LONGEST_NAME);
  const description = textOf(place.value, 'description', LONGEST_DESCRIPTION);
  return description === '' || description === name ? { name } : { name, description };
}

function textOf(value: JsonObject, member: string, longest: number): string {
  const text = value[member];
  return typeof text === 'string' ? plainText(text, longest) : '';
}
