/** The validators of inputs, and what is wrong with a schema itself. */

import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import type { JsonObject } from '../../json/types.ts';
import { memberPath } from '../../problems/problem.ts';
import { FORMATS } from '../patterns/formats.ts';
import { matchesMetaSchema } from './compiled.ts';
import { createEngine } from './engine.ts';
import type { ResourceFault } from './keywords.ts';

/** Both validators of a schema. */
export interface Validators {
  /** Stops at the first problem: a verdict that is cheap for hostile input. */
  readonly first: ValidateFunction;
  /**
   * Finds every problem: the report, for small inputs. It is compiled when the first input is
   * wrong, because it takes as long as the other.
   */
  readonly all: () => ValidateFunction;
}

/**
 * Compiles checked and closed schemas; throws for one that cannot be compiled. An engine keeps all
 * that it ever compiled, so each configuration has its own.
 */
export function createCompiler(): (schema: JsonObject) => Validators {
  const first = createEngine({ allErrors: false });
  let all: ReturnType<typeof createEngine> | undefined;
  return function compileValidators(schema) {
    if (!matchesMetaSchema(schema)) throw new Error('is not valid JSON Schema');
    const stopping = first.compile(schema);
    let reporting: ValidateFunction | undefined;
    return {
      first: stopping,
      all() {
        all ??= createEngine({ allErrors: true });
        reporting ??= all.compile(schema);
        return reporting;
      },
    };
  };
}

export function isKnownFormat(name: string): boolean {
  return Object.hasOwn(FORMATS, name);
}

/** Values of the wrong shape, such as `minLength: -1`, by the meta-schema of 2020-12. */
export function metaSchemaFaults(schema: JsonObject, at: string): readonly ResourceFault[] {
  if (matchesMetaSchema(schema)) return [];
  return (matchesMetaSchema.errors ?? [])
    .filter(({ keyword }) => keyword !== 'if')
    .map((error: ErrorObject) => ({
      path: error.instancePath.split('/').slice(1).reduce<string>(memberPath, at),
      message: `is not valid JSON Schema: ${error.message ?? 'wrong value'}`,
    }));
}
