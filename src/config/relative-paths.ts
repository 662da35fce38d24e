/** Paths in the configuration file are relative to its folder, whatever folder `acg` runs in. */

import { statSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import type { ProblemList } from '../problems/problem.ts';
import { isMapping } from './document/mapping.ts';

const PATH = 'storage.sqlite.path';
const IN_MEMORY = ':memory:';

/**
 * The document with the path of the database as an absolute one. What is no mapping or no text
 * stays as it is, for the schema to refuse. A database that lies in the working directory, where
 * earlier releases looked for it, is refused: an empty one would take its place.
 */
export function withAbsolutePaths(document: unknown, file: string, problems: ProblemList): unknown {
  if (!isMapping(document)) return document;
  const { storage } = document;
  if (!isMapping(storage) || !isMapping(storage['sqlite'])) return document;
  const { path } = storage['sqlite'];
  if (typeof path !== 'string' || path === '' || path === IN_MEMORY || isAbsolute(path)) return document;
  const absolute = resolve(dirname(file), path);
  const earlier = resolve(path);
  if (earlier !== absolute && isFile(earlier) && !isFile(absolute))
    problems.add(
      PATH,
      `is relative to the folder of the configuration file and means ${absolute}, where no database is, while ${earlier} ` +
        'in the working directory is one; move it there with its -wal file, or write its absolute path here',
    );
  return { ...document, storage: { ...storage, sqlite: { ...storage['sqlite'], path: absolute } } };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
