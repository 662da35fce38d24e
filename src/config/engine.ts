import { Ajv2020, type CodeOptions } from 'ajv/dist/2020.js';

/**
 * What compiles the schema of the configuration. `code`: whether as source text as well, for the
 * bundle.
 */
export function createConfigEngine(code: CodeOptions = {}): Ajv2020 {
  return new Ajv2020({
    strict: true,
    // A test holds the schema against its meta-schema; compiling that one takes longer than
    // compiling the schema.
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
