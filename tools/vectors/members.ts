/** Reads files of vectors member by member, so that an error names what is wrong in the file. */

import { readFileSync } from 'node:fs';
import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';

/** @throws the error of the system, or one that names the file */
export function readJson(path: string): Json {
  const text = readFileSync(path, 'utf8');
  try {
    return JSON.parse(text) as Json;
  } catch (cause) {
    throw new Error(`${path} cannot be read as JSON: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}

/** An object of a file, and where it stands there. */
export class Members {
  readonly #where: string;
  readonly #object: JsonObject;

  /** @throws Error for another type, or an unknown member: its rule would not be checked */
  constructor(value: Json | undefined, where: string, known: readonly string[]) {
    if (!isObject(value)) throw new Error(`${where} must be an object`);
    for (const name of Object.keys(value))
      if (!known.includes(name)) throw new Error(`${where}.${name} is not known (known: ${known.join(', ')})`);
    this.#where = where;
    this.#object = value;
  }

  has(name: string): boolean {
    return this.#object[name] !== undefined && this.#object[name] !== null;
  }

  value(name: string): Json | undefined {
    return this.#object[name];
  }

  text(name: string): string {
    return this.#read(name, 'a text', (value) => typeof value === 'string') as string;
  }

  number(name: string): number {
    return this.#read(name, 'a number', (value) => typeof value === 'number') as number;
  }

  flag(name: string): boolean {
    return this.#read(name, 'true or false', (value) => typeof value === 'boolean') as boolean;
  }

  object(name: string): JsonObject {
    return this.#read(name, 'an object', isObject) as JsonObject;
  }

  list(name: string): readonly Json[] {
    return this.#read(name, 'a list', Array.isArray) as readonly Json[];
  }

  texts(name: string): readonly string[] {
    const all = (value: Json) => Array.isArray(value) && value.every((one: Json) => typeof one === 'string');
    return this.#read(name, 'a list of texts', all) as readonly string[];
  }

  objects(name: string): readonly JsonObject[] {
    const all = (value: Json) => Array.isArray(value) && value.every((one: Json) => isObject(one));
    return this.#read(name, 'a list of objects', all) as readonly JsonObject[];
  }

  /** Undefined where the member is absent or null. */
  optional<T>(name: string, read: (name: string) => T): T | undefined {
    return this.has(name) ? read.call(this, name) : undefined;
  }

  #read(name: string, what: string, is: (value: Json) => boolean): Json {
    const value = this.#object[name];
    if (value === undefined || !is(value)) throw new Error(`${this.#where}.${name} must be ${what}`);
    return value;
  }
}
