import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where files of the specs of one process lie until it ends. */
export const folder = mkdtempSync(join(tmpdir(), 'acg-config-'));
process.once('exit', () => rmSync(folder, { recursive: true }));

/** Writes a file and gives its path. */
export function file(name: string, content: string | Uint8Array): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

/** A placeholder: the name in braces behind a dollar sign. */
export function at(name: string): string {
  return `\${${name}}`;
}
