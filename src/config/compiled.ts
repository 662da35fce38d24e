/**
 * The compiled schema of the configuration. In the bundle `matchesSchema` is generated code
 * (deploy/bundle/validators.ts): compiling takes a quarter of a start.
 */

import { Ajv2020, type CodeOptions } from 'ajv/dist/2020.js';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import type { ConfigDocument } from './document/document.ts';

// `optimize` would take a third of the time, and the generated code runs once or twice.
export const matchesSchema = createConfigEngine({ optimize: false }).compile<ConfigDocument>(schema);

/** @param code Whether to produce source text as well, for the bundle. */
export function createConfigEngine(code: CodeOptions = {}): Ajv2020 {
  return new Ajv2020({
    strict: true,
    useDefaults: true,
    // Keywords for editors, docs/configuration.md and other readers of the schema.
    keywords: ['markdownDescription', 'x-derived', 'x-form', 'x-reload'],
    // A test checks the schema; compiling the meta-schema takes longer than the schema.
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
