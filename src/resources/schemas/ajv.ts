/** Compiles validators of inputs, decides when, and finds the faults of schemas themselves. */

import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import { memberPath } from '../../problems/problem.ts';
import { FORMATS } from '../patterns/formats.ts';
import { matchesMetaSchema } from './compiled.ts';
import { createEngine } from './engine.ts';
import { type ResourceFault, resolveReference, subschemas } from './keywords.ts';

/** Both validators of a schema. Each is compiled once, at the latest when it is asked for. */
export interface Validators {
  /** Stops at the first problem: a verdict that is cheap for hostile input. */
  readonly first: () => ValidateFunction;
  /** Finds every problem: the report, for small inputs. Only wrong inputs need it. */
  readonly all: () => ValidateFunction;
  /** Compiles `first` unless it is compiled; returns whether it compiled now. */
  readonly compile: () => boolean;
}

/**
 * So many different schemas are compiled at start whatever they are, so that no call of an ordinary
 * gateway waits for a compilation; each takes about a millisecond and 10 kB.
 */
const COMPILED_AT_START = 100;

/** Compiles checked and closed schemas; throws for one that cannot be compiled. */
type Compile = (schema: JsonObject) => Validators;

/**
 * The compiler of one configuration: an engine keeps all that it ever compiled. Equal schemas share
 * their validators; schemas beyond the first ones are compiled later if that cannot fail.
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
    // Compiled at the first wrong input, this validator would hold up the event loop.
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

/** Keeps the schema and the engines alive only, not the texts in `known`. */
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

/**
 * Most schemas in one, references followed, that a call may compile. Each of the two validators is
 * compiled in a turn of its own, and takes some 5 ms, at most 12.
 */
const MOST_SCHEMAS = 40;
/** Values of an `enum`, or names that others depend on, that take as long as one schema. */
const VALUES_A_SCHEMA = 10;
/** Longer lists are compared in a loop, whose code does not grow. */
const LONGEST_WRITTEN_OUT = 200;
/** Keywords of which each takes as long as a schema. */
const MATCHED = ['pattern', 'format'];
/**
 * A reference to a definition, which the meta-schema has found to be a schema. The validator and
 * `resolveReference` read it alike, because it has no escapes.
 */
const PLAIN_REFERENCE = /^#\/\$defs\/[\w$.-]+$/;
/** Keywords that the validator refuses beside certain others, or without them. */
const CONDITIONAL = ['minContains', 'maxContains', 'unevaluatedProperties', 'unevaluatedItems', '$anchor', '$schema'];

/**
 * Whether a checked and closed schema is small, and has only keywords that the validator compiles
 * with any value. Any other schema is compiled at start, which shows its mistake.
 */
export function mayCompileLater(root: JsonObject): boolean {
  let left = MOST_SCHEMAS;
  const isPlain = (schema: Json): boolean => {
    left -= 1;
    if (left < 0) return false;
    if (!isObject(schema)) return true;
    if (CONDITIONAL.some((keyword) => keyword in schema)) return false;
    const { enum: values, $ref: reference } = schema;
    left -= MATCHED.filter((keyword) => keyword in schema).length + dependentCost(schema);
    if (Array.isArray(values)) {
      if (values.length === 0) return false;
      if (values.length <= LONGEST_WRITTEN_OUT) left -= Math.floor(values.length / VALUES_A_SCHEMA);
    }
    if (!isWholeCondition(schema)) return false;
    // The validator refuses a property whose name a pattern matches too.
    if ('patternProperties' in schema && 'properties' in schema) return false;
    if (reference !== undefined) {
      if (typeof reference !== 'string' || !PLAIN_REFERENCE.test(reference)) return false;
      const target = resolveReference(root, reference);
      if (target === undefined || !isPlain(target)) return false;
    }
    return subschemas(schema).every((inner) => isPlain(inner.schema));
  };
  return isPlain(root);
}

/** The cost of `dependentRequired`, in schemas. */
function dependentCost({ dependentRequired }: JsonObject): number {
  const lists = isObject(dependentRequired) ? Object.values(dependentRequired) : [];
  return lists.reduce<number>((sum, names) => sum + 1 + (Array.isArray(names) ? names.length : 0) / VALUES_A_SCHEMA, 0);
}

function isWholeCondition(schema: JsonObject): boolean {
  return 'if' in schema === ('then' in schema || 'else' in schema);
}
