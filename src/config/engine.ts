/** The engine that compiles the schema of the configuration, at start and for the bundle. */

import { Ajv2020, type CodeOptions } from 'ajv/dist/2020.js';

/** @param code Whether to produce source text as well, for the bundle. */
export function createConfigEngine(code: CodeOptions = {}): Ajv2020 {
  return new Ajv2020({
    strict: true,
    // What editors show of a key, and docs/configuration.md has in its tables.
    keywords: ['markdownDescription'],
    // A test compares the schema with its meta-schema; compiling that takes longer than the schema.
    validateSchema: false,
    // Conditions (if/then) name properties that their parent declares and types.
    strictTypes: false,
    strictRequired: false,
    allErrors: true,
    verbose: true,
    ownProperties: true,
    code,
  });
}
