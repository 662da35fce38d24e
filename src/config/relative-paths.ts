/** Paths in the configuration file are relative to its folder, whatever folder `acg` runs in. */

import { dirname, isAbsolute, resolve } from 'node:path';
import { isMapping } from './document/mapping.ts';

const IN_MEMORY = ':memory:';

/**
 * The document with the path of the database as an absolute one. What is no mapping or no text
 * stays as it is, for the schema to refuse.
 */
export function withAbsolutePaths(document: unknown, file: string): unknown {
  if (!isMapping(document)) return document;
  const { storage } = document;
  if (!isMapping(storage) || !isMapping(storage['sqlite'])) return document;
  const { path } = storage['sqlite'];
  if (typeof path !== 'string' || path === '' || path === IN_MEMORY || isAbsolute(path)) return document;
  const absolute = resolve(dirname(file), path);
  return { ...document, storage: { ...storage, sqlite: { ...storage['sqlite'], path: absolute } } };
}
