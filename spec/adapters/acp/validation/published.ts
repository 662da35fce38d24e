import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import type { DocumentName } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json, JsonObject } from '../../../../src/json/json.ts';

const SHARED = join(import.meta.dirname, '../../../../../shared');
const addFormats = formatsPlugin.default ?? formatsPlugin;

/** The labelled documents (acp 14). */
export const CORPUS_FILE = process.env['ACP_CORPUS'] ?? join(SHARED, 'vectors/acp-corpus.json');

/** The schema that the protocol publishes: test data, no part of this repository. */
export const OFFICIAL_SCHEMA_FILE =
  process.env['ACP_SCHEMA'] ?? join(SHARED, 'acp/2026-04-17/json-schema/schema.agentic_checkout.json');

/** For `skip` of a test: names what was not checked; false where the file exists. */
export function unless(file: string, what: string): string | false {
  return existsSync(file) ? false : `there is no ${file}: ${what}`;
}

/** The official schema, and its verdicts. */
export interface Official {
  readonly definitions: JsonObject;
  accepts(name: DocumentName, document: Json): boolean;
}

export function readOfficial(): Official {
  const bundle = JSON.parse(readFileSync(OFFICIAL_SCHEMA_FILE, 'utf8')) as JsonObject & {
    readonly $defs: JsonObject;
  };
  // As the corpus was labelled.
  const ajv = new Ajv2020({ strict: false, messages: false });
  addFormats(ajv);
  ajv.addSchema(bundle, 'official');
  return {
    definitions: bundle.$defs,
    accepts(name, document) {
      const compiled = ajv.getSchema(`official#/$defs/${name}`);
      if (compiled === undefined) throw new Error(`the official schema has no ${name}`);
      return compiled(document) === true;
    },
  };
}
