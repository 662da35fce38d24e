/** Reads the configuration file, and the files that it names, as bounded text. */

import { readFileSync, statSync } from 'node:fs';
import { ConfigError } from '../../problems/problem.ts';

/** Largest configuration file, bytes: 10,000 resources with schemas of a page each, in JSON. */
export const MAX_CONFIG_BYTES = 16_777_216;
/** Deepest nesting of the document, levels: above any JSON Schema that a person writes. */
export const MAX_CONFIG_DEPTH = 64;
/** The configuration file unless an argument or the environment names one. */
const DEFAULT_CONFIG_PATH = 'config.yaml';

/** What the commonest codes of the system mean. */
const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: ': there is no such file',
  EACCES: ': this user has no right to read it',
};

/** The process environment, passed in: nothing here reads `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

export function configPath(argument: string | undefined, env: Environment): string {
  return argument || env['AGENT_COMMERCE_CONFIG'] || DEFAULT_CONFIG_PATH;
}

/** @throws ConfigError when the file cannot be read, is too large or is not UTF-8 */
export function readConfigFile(path: string): string {
  return readBoundedFile(path, MAX_CONFIG_BYTES, (message, at) =>
    at === undefined
      ? new ConfigError([{ path: 'document', message: `${path} ${message}` }])
      : new ConfigError([{ path: 'document', message, place: { file: path, ...at } }]),
  );
}

/**
 * Reads a regular UTF-8 file of bounded size; `fault` makes the caller's error of a message that
 * goes on behind the path, and of the place of a byte.
 */
export function readBoundedFile(
  path: string,
  maxBytes: number,
  fault: (message: string, at?: { readonly line: number; readonly column: number }) => Error,
): string {
  let bytes: Buffer;
  try {
    const stat = statSync(path);
    // A pipe or a device would block the start for ever.
    if (!stat.isFile()) throw fault('is not a regular file');
    if (stat.size > maxBytes) throw fault(`is larger than ${maxBytes} bytes`);
    bytes = readFileSync(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) throw error;
    throw fault(`cannot be read (${error.code})${UNREADABLE[error.code] ?? ''}`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // A byte that is none of UTF-8 becomes this character.
    const lines = bytes.toString('utf8').split('\n');
    const line = lines.findIndex((text) => text.includes('\ufffd'));
    const column = (lines[line] ?? '').indexOf('\ufffd') + 1;
    throw fault('is not UTF-8; save it as UTF-8', { line: line + 1, column });
  }
}

/** The certificates of a PEM text. */
export function pemCertificates(text: string): readonly string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}
