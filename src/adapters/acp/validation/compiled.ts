/**
 * Gives the validator the code of one schema. The bundle replaces this module with one of the same
 * export that holds the code of all schemas (deploy/bundle/validators.ts), and compiles none.
 */

import type { ErrorObject } from 'ajv/dist/2020.js';
import type { Json } from '../../../json/json.ts';
import { createEngine, referenceTo } from './engine.ts';
import type { Build, DocumentName } from './validator.ts';

/** The verdict on a document. Until the next call `errors` holds why it was refused. */
export interface Compiled {
  (document: Json): boolean;
  readonly errors?: readonly ErrorObject[] | null;
}

const engines = new Map<Build, ReturnType<typeof createEngine>>();

/** The code of one schema, compiled at its first use. */
export function compiledOf(build: Build, name: DocumentName): Compiled {
  const engine = engines.get(build) ?? createEngine(build);
  engines.set(build, engine);
  const compiled = engine.getSchema(referenceTo(name));
  if (compiled === undefined) throw new Error(`there is no schema of ${name}`);
  return compiled as Compiled;
}
