/** The validators of inputs, and what is wrong with a schema itself. */

import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import type { JsonObject } from '../../json/types.ts';
import { memberPath } from '../../problems/problem.ts';
import { FORMATS } from '../patterns/formats.ts';
import { mayCompileLater } from './compile-later.ts';
import { matchesMetaSchema } from './compiled.ts';
import { createEngine } from './engine.ts';
import type { ResourceFault } from './keywords.ts';

/** Both validators of a schema. Each is compiled once, at the latest when it is asked for. */
export interface Validators {
  /** Stops at the first problem: a verdict that is cheap for hostile input. */
  readonly first: () => ValidateFunction;
  /** Finds every problem: the report, for small inputs. Only wrong inputs need it. */
  readonly all: () => ValidateFunction;
  /** Compiles `first` unless it is compiled; whether it did. */
  readonly compile: () => boolean;
}

/**
 * Different schemas that are compiled at start whatever they are, so that no call of an ordinary
 * gateway waits for that; each takes about a millisecond and 10 kB.
 */
const COMPILED_AT_START = 100;

/** Compiles checked and closed schemas; throws for one that cannot be compiled. */
type Compile = (schema: JsonObject) => Validators;

/**
 * The compiler of one configuration: an engine keeps all that it ever compiled. Equal schemas share
 * their validators, and those beyond the first ones are compiled later where that cannot fail.
 */
export function createCompiler(): Compile {
  const engines = createEngines();
  const known = new Map<string, Validators>();
  return function compileValidators(schema) {
    const text = JSON.stringify(schema);
    const same = known.get(text);
    if (same !== undefined) return same;
    const validators = validatorsOf(engines, schema);
    const later = mayCompileLater(schema);
    if (!later || known.size < COMPILED_AT_START) validators.first();
    // Its compilation would hold up the event loop at the first wrong input.
    if (!later) validators.all();
    known.set(text, validators);
    return validators;
  };
}

interface Engines {
  readonly first: () => Ajv;
  readonly all: () => Ajv;
}
type Ajv = ReturnType<typeof createEngine>;

function createEngines(): Engines {
  return { first: once(() => createEngine({ allErrors: false })), all: once(() => createEngine({ allErrors: true })) };
}

/** Holds nothing but the schema and the engines, so that the texts of the others can go. */
function validatorsOf(engines: Engines, schema: JsonObject): Validators {
  let isCompiled = false;
  const first = once(() => {
    isCompiled = true;
    return engines.first().compile(schema);
  });
  return {
    first,
    all: once(() => engines.all().compile(schema)),
    compile() {
      if (isCompiled) return false;
      first();
      return true;
    },
  };
}

function once<Made extends object>(make: () => Made): () => Made {
  let made: Made | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

export const KNOWN_FORMATS: readonly string[] = Object.keys(FORMATS);

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
