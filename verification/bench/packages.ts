/** The packages of peers that the tests need too, by their exact versions. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const INSTALLED = join(import.meta.dirname, '../../node_modules');

/** `express` -> `express 5.3.0`, for the titles of peers. */
export function exact(...names: readonly string[]): string {
  return names.map((name) => `${name} ${versionOf(name)}`).join(' + ');
}

function versionOf(name: string): string {
  const { version } = JSON.parse(readFileSync(join(INSTALLED, name, 'package.json'), 'utf8')) as { version: string };
  return version;
}
