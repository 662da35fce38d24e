import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { WrittenResource } from '../../../src/config/document/document.ts';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import { type Import, type ImportOptions, importOpenApi } from '../../../tools/import/import.ts';

const USUAL: ImportOptions = {
  price: undefined,
  currency: 'USDC',
  ignoreSecurity: false,
  basePath: undefined,
  expose: [],
  choice: { tags: [], operations: [] },
};

/** What is imported of a document with these paths. `more`: other members of its top level. */
export function imported(paths: object, more: object = {}, options: Partial<ImportOptions> = {}): Import {
  const document = { openapi: '3.1.0', info: { title: 'It', version: '1' }, paths, ...more };
  return importFiles({ 'it.json': document }, options);
}

/** The first file is the document. */
export function importFiles(files: Readonly<Record<string, object>>, options: Partial<ImportOptions> = {}): Import {
  const [root = ''] = Object.keys(files);
  const read = new Map(Object.entries(files).map(([name, file]) => [name, structuredClone(file) as Json]));
  return importOpenApi({ root, files: read }, { ...USUAL, ...options });
}

/** The resource of the one operation. @throws Error with the reason when it was skipped */
export function resourceOf(result: Import): WrittenResource {
  const [resource] = Object.values(result.resources);
  if (resource === undefined) throw new Error(result.skipped.map(({ reason }) => reason).join('; '));
  return resource;
}

/** The input property that a schema of a JSON body member becomes, and what was left out. */
export function inputOf(
  schema: object,
  version = '3.1.0',
  components: object = {},
): { property: Json; leftOut: string[] } {
  const body = { type: 'object', required: ['it'], properties: { it: schema } };
  const result = imported(
    { '/x': { post: { requestBody: { required: true, content: { 'application/json': { schema: body } } } } } },
    { openapi: version, components: { schemas: components } },
  );
  const { inputSchema } = resourceOf(result);
  const properties = inputSchema?.['properties'] as JsonObject;
  return {
    property: properties['it'] ?? null,
    leftOut: result.narrowed.map(({ path, reason }) => `${path}: ${reason}`),
  };
}

/** A schema of a member, with the schemas that it refers to, and values. */
export interface Taken {
  readonly title: string;
  readonly schema: object;
  readonly components?: object;
  readonly takes: readonly unknown[];
  readonly refuses: readonly unknown[];
}

interface Tables {
  readonly taken: readonly Taken[];
  readonly rewritten: readonly {
    readonly title: string;
    readonly openapi: string;
    readonly schema: object;
    readonly becomes: object | 'the same';
  }[];
  readonly refused: readonly { readonly title: string; readonly schema: object; readonly says: string }[];
  readonly skipped: readonly { readonly title: string; readonly operation: object; readonly says: string }[];
}

export const TABLES = parse(readFileSync(join(import.meta.dirname, 'dialect.yaml'), 'utf8')) as Tables;
