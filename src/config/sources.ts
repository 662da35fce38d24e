/** The files that a configuration is read from, and whether their content has changed. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { configPath, type Environment } from './document/read.ts';
import { OVERRIDES } from './expand.ts';
import type { ConfigSource } from './load.ts';

/** `${file:/path}`, and the variables that a placeholder names. */
const FILE = /\$\{file:(\/[^}]*)\}/g;
const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}/g;

/** What a configuration would be read from now. */
interface Sources {
  /** Absolute paths, the configuration file first. */
  readonly files: readonly string[];
  /** The same for the same content. A file that cannot be read counts as one of no content. */
  readonly digest: string;
}

/** Reads all files once. Names of files are taken from the text: it may be no valid document. */
export function readSources({ path, env }: ConfigSource): Sources {
  const file = resolve(configPath(path, env));
  const text = contentOf(file);
  const mounted = text === undefined ? [] : mountedFiles(text.toString('utf8'), env);
  const files = [...new Set([file, ...mounted.map((name) => resolve(name))])];
  const hash = createHash('sha256');
  for (const name of files) {
    const content = name === file ? text : contentOf(name);
    hash.update(`${name}\0${content?.length ?? -1}\0`).update(content ?? '');
  }
  return { files, digest: hash.digest('base64url') };
}

function mountedFiles(text: string, env: Environment): readonly string[] {
  const named = [...text.matchAll(FILE)].map(([, name = '']) => name);
  const variables = [
    ...OVERRIDES.map(({ name }) => name),
    ...[...text.matchAll(VARIABLE)].map(([, name = '']) => name),
  ];
  return [...named, ...variables.map((name) => env[`${name}_FILE`] ?? '')].filter((name) => name !== '');
}

function contentOf(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}
