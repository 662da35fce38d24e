/** `acg vectors acp`: puts labelled documents (acp 14) through the validators of ACP that serve. */

import { RELAXED } from '../../src/adapters/acp/validation/engine.ts';
import {
  DOCUMENT_NAMES,
  type DocumentName,
  REQUEST_NAMES,
  validatorOf,
} from '../../src/adapters/acp/validation/validator.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { Members, readJson } from './members.ts';

const LOOSENED: ReadonlySet<string> = new Set(RELAXED.wire);
const REQUESTS: ReadonlySet<string> = new Set(REQUEST_NAMES);
const DIRECTIONS: readonly string[] = ['request', 'response', 'error', 'discovery'];

/** One document and the verdict of the official schema on it. */
interface CorpusCase {
  readonly id: string;
  readonly schema: DocumentName;
  readonly valid: boolean;
  /** Among them the relaxations that would make it valid. */
  readonly tags: readonly string[];
  readonly body: Json;
}

/**
 * The strict build must agree with the official schema; so must the wire build, except that it
 * accepts the requests that a tag names as loosened. Prints one line for every other verdict, and
 * one with the counts. Returns how many there were.
 * @throws Error for a file that is not understood
 */
export function corpusMismatches(file: string): number {
  const cases = readCorpus(file);
  const mismatches = cases.flatMap(mismatchesOf);
  for (const line of mismatches) process.stdout.write(`${line}\n`);
  process.stdout.write(`${cases.length} cases, ${mismatches.length} mismatches\n`);
  return mismatches.length;
}

function mismatchesOf({ id, schema, valid, tags, body }: CorpusCase): readonly string[] {
  const loosened = REQUESTS.has(schema) && tags.some((tag) => LOOSENED.has(tag));
  const expected = { strict: valid, wire: valid || loosened };
  return (['strict', 'wire'] as const).flatMap((build) => {
    const fault = validatorOf(build, schema)(body);
    if ((fault === undefined) === expected[build]) return [];
    const found = fault === undefined ? 'valid' : `invalid (${fault.param} ${fault.message})`;
    return [`${id} ${schema}: ${build} expected ${expected[build] ? 'valid' : 'invalid'}, was ${found}`];
  });
}

/**
 * Reads a file of labelled documents. Members about the origin of a document are not read.
 * @throws Error that names the member that is wrong
 */
export function readCorpus(path: string): readonly CorpusCase[] {
  const file = membersOf(readJson(path), 'the file');
  file.text('spec');
  const cases = file.objects('cases').map(readCase);
  if (cases.length === 0) throw new Error('the file has no cases');
  const ids = new Map(cases.map(({ id }, index) => [id, index]));
  const twice = cases.find(({ id }, index) => ids.get(id) !== index);
  if (twice !== undefined) throw new Error(`two cases have one id: ${twice.id}`);
  return cases;
}

function readCase(value: JsonObject, index: number): CorpusCase {
  const where = `cases[${index}]`;
  const read = membersOf(value, where);
  const direction = read.text('direction');
  if (!DIRECTIONS.includes(direction)) throw new Error(`${where}.direction must be one of ${DIRECTIONS.join(', ')}`);
  const body = read.value('body');
  if (body === undefined) throw new Error(`${where}.body is missing`);
  return {
    id: read.text('id'),
    schema: readName(read.text('schema'), where),
    valid: read.flag('valid'),
    tags: read.optional('tags', read.texts) ?? [],
    body,
  };
}

function membersOf(value: Json, where: string): Members {
  return new Members(value, where, isObject(value) ? Object.keys(value) : []);
}

function readName(text: string, where: string): DocumentName {
  const name = DOCUMENT_NAMES.find((known) => known === text);
  if (name === undefined)
    throw new Error(`${where}.schema ${JSON.stringify(text)} is not known (known: ${DOCUMENT_NAMES.join(', ')})`);
  return name;
}
