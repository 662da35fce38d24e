import type { Json } from '../../../../../src/json/types.ts';
import { pathsOf, valueAt, withValue } from './mutate.ts';

/**
 * The smallest document that still shows it: members and items are taken away as long as one can
 * be.
 */
export function shrunk(document: Json, shows: (document: Json) => boolean): Json {
  for (const path of pathsOf(document)) {
    if (path.length === 0) continue;
    const smaller = withValue(document, path, undefined);
    if (shows(smaller)) return shrunk(smaller, shows);
  }
  for (const path of pathsOf(document)) {
    const value = valueAt(document, path);
    if (typeof value !== 'string' || value.length < 2) continue;
    const shorter = withValue(document, path, value.slice(0, value.length >> 1));
    if (shows(shorter)) return shrunk(shorter, shows);
  }
  return document;
}
