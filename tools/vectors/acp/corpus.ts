import { DOCUMENT_NAMES, type DocumentName } from '../../../src/adapters/acp/validation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/types.ts';
import { readJson } from '../json-file.ts';
import { Members } from '../members.ts';

/** One document and the verdict of the official schema on it. */
export interface CorpusCase {
  readonly id: string;
  readonly schema: DocumentName;
  readonly valid: boolean;
  /** Among them the relaxations that would make it valid. */
  readonly tags: readonly string[];
  readonly body: Json;
}

const DIRECTIONS: readonly string[] = ['request', 'response', 'error', 'discovery'];

/**
 * Reads a file of labelled documents (acp 14). Members about the origin of a document are not read.
 * @throws Error that names the member that is wrong
 */
export function readCorpus(path: string): readonly CorpusCase[] {
  const value = readJson(path);
  const file = membersOf(value, 'the file');
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
