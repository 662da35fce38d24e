/** Reads and writes the files of `acg mandate`, with errors that name them. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Json, JsonError, parseStrictJson } from '../../src/json/json.ts';

/** Only the user of the command may read what it writes. */
const OWNER_ONLY = 0o600;
const DIRECTORY_OWNER_ONLY = 0o700;
/** Larger than any challenge or file of mandates. */
const MOST_BYTES = 1_048_576;

/** @throws Error that names the file; one that exists is never written over */
export function writeNew(file: string, text: string): void {
  mkdirSync(path.dirname(path.resolve(file)), { recursive: true, mode: DIRECTORY_OWNER_ONLY });
  try {
    writeFileSync(file, text, { mode: OWNER_ONLY, flag: 'wx' });
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') throw new Error(`${file} is there already; name another place, or remove it first`);
    throw new Error(`${file} cannot be written (${codeOf(cause)})`, { cause });
  }
}

/** A file, or standard input for `-`. @throws the error of the system, or one that names it */
export function readText(file: string): string {
  const bytes = readFileSync(file === '-' ? 0 : file);
  if (bytes.length > MOST_BYTES) throw new Error(`${named(file)} has more than ${MOST_BYTES} bytes`);
  return bytes.toString('utf8');
}

/** @throws Error that describes a text that is no JSON */
export function readJson(file: string): Json {
  const text = readText(file).trim();
  if (text === '') throw new Error(`${named(file)} is empty`);
  if (/^HTTP\/\d/.test(text))
    throw new Error(`${named(file)} begins with the head of an answer: give the body alone (curl -s, not -si)`);
  try {
    return parseStrictJson(Buffer.from(text, 'utf8'));
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Error(`${named(file)} is no JSON that can be read (${error.reason})`);
  }
}

/** The file as errors name it. */
export function named(file: string): string {
  return file === '-' ? 'standard input' : file;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
