/** The JSON Schema validators, with linear patterns and formats and a linear `uniqueItems`. */

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { canonicalJson } from '../../json/canonical.ts';
import type { Json, JsonObject } from '../../json/types.ts';
import { memberPath } from '../../problems/problem.ts';
import { FORMATS } from '../patterns/formats.ts';
import { linearRegExp } from '../patterns/linear.ts';
import { MAX_MATCHED_LENGTH } from './closed-objects.ts';
import { MIRROR_KEYWORD, type ResourceFault } from './keywords.ts';

/** A text is too long for a pattern or format. Thrown: with "no match" `not` would accept it. */
export class MatchLengthError extends Error {}

function bounded(test: (text: string) => boolean): (text: string) => boolean {
  return (text) => {
    if (text.length > MAX_MATCHED_LENGTH) throw new MatchLengthError();
    return test(text);
  };
}

/** Ignores the flag `u` that the validator passes: the linear engine does not support it. */
const regExp = Object.assign(
  (pattern: string) => {
    const expression = linearRegExp(pattern);
    return { test: bounded((text) => expression.test(text)), toString: () => expression.toString() };
  },
  { code: 'new RegExp' },
);

function createAjv(allErrors: boolean): Ajv2020 {
  const ajv = new Ajv2020({
    strict: true,
    // Only the first validator checks schemas, so that the meta-schema is compiled once.
    validateSchema: !allErrors,
    // `closeSchema` adds keywords beside which no type is declared; `schemaFaults` checks types.
    strictTypes: false,
    strictRequired: false,
    ownProperties: true,
    unicodeRegExp: false,
    validateFormats: true,
    addUsedSchema: false,
    allErrors,
    code: { regExp },
  });
  for (const [name, test] of Object.entries(FORMATS)) ajv.addFormat(name, bounded(test));
  // One concerns headers, the other is a name: neither asserts anything about a value.
  for (const keyword of [MIRROR_KEYWORD, '$anchor']) ajv.addKeyword({ keyword, schemaType: 'string' });
  // The original compares every pair, and 130,000 small objects fit into one body.
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must not have equal items' },
    validate: (unique: boolean, items: readonly Json[]) =>
      !unique || new Set(items.map((item) => canonicalJson(item))).size === items.length,
  });
  return ajv;
}

/** Stops at the first problem: a verdict that is cheap for hostile input. */
const first = createAjv(false);
/** Finds every problem: the report, for small inputs. */
const all = createAjv(true);

/** Both validators of a checked and closed schema. Throws when it cannot be compiled. */
export function compileValidators(schema: JsonObject): {
  readonly first: ValidateFunction;
  readonly all: ValidateFunction;
} {
  return { first: first.compile(schema), all: all.compile(schema) };
}

export function isKnownFormat(name: string): boolean {
  return Object.hasOwn(FORMATS, name);
}

/** Values of the wrong shape, such as `minLength: -1`, by the meta-schema of 2020-12. */
export function metaSchemaFaults(schema: JsonObject, at: string): readonly ResourceFault[] {
  if (first.validateSchema(schema) === true) return [];
  return (first.errors ?? [])
    .filter(({ keyword }) => keyword !== 'if')
    .map((error: ErrorObject) => ({
      path: error.instancePath.split('/').slice(1).reduce<string>(memberPath, at),
      message: `is not valid JSON Schema: ${error.message ?? 'wrong value'}`,
    }));
}
