import { readFileSync } from 'node:fs';
import type { Json } from '../../src/json/types.ts';

/** @throws Error that names the file */
export function readJson(path: string): Json {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Json;
  } catch (cause) {
    throw new Error(`${path} cannot be read as JSON: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}
