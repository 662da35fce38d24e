/**
 * The compiled meta-schema of JSON Schema 2020-12. The bundle replaces this module by generated
 * code with the same export (deploy/bundle/validators.ts): compiling the meta-schema takes longer
 * than all else that a small configuration needs.
 */

import type { ValidateFunction } from 'ajv/dist/2020.js';
import { createEngine } from './engine.ts';
import { DIALECT } from './keywords.ts';

function compile(): ValidateFunction {
  // Making the generated code smaller takes almost half of the time.
  const compiled = createEngine({ allErrors: false, meta: true, code: { optimize: false } }).getSchema(DIALECT);
  if (compiled === undefined) throw new Error('the library has no meta-schema');
  return compiled as ValidateFunction;
}

export const matchesMetaSchema = compile();
