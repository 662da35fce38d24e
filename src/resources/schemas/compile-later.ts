/** Which schemas may be compiled when their first input comes: it can neither fail nor stall. */

import { isObject, type Json, type JsonObject } from '../../json/types.ts';
import { resolveReference, subschemas } from './keywords.ts';

/**
 * Most schemas in one, references followed, that a call may compile: each of both validators, which
 * have turns of their own, then takes some 5 ms, and at most 12.
 */
const MOST_SCHEMAS = 40;
/** Values of an `enum`, or names that others depend on, that take as long as one schema. */
const VALUES_A_SCHEMA = 10;
/** Longer lists are compared in a loop, whose code does not grow. */
const LONGEST_WRITTEN_OUT = 200;
/** Each takes as long as a schema. */
const MATCHED = ['pattern', 'format'];
/**
 * A reference to what the meta-schema has found to be a schema, and which the validator and
 * `resolveReference` read alike: nothing in it is escaped.
 */
const PLAIN_REFERENCE = /^#\/\$defs\/[\w$.-]+$/;
/** Keywords that the validator refuses beside certain others, or without them. */
const CONDITIONAL = ['minContains', 'maxContains', 'unevaluatedProperties', 'unevaluatedItems', '$anchor', '$schema'];

/**
 * Whether a checked and closed schema is small, and is made of nothing but what the validator
 * compiles whatever stands there. Any other one is compiled at start, which names its mistake.
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
    // A name that a pattern matches as well is refused.
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

/** What `dependentRequired` takes, in schemas. */
function dependentCost({ dependentRequired }: JsonObject): number {
  const lists = isObject(dependentRequired) ? Object.values(dependentRequired) : [];
  return lists.reduce<number>((sum, names) => sum + 1 + (Array.isArray(names) ? names.length : 0) / VALUES_A_SCHEMA, 0);
}

function isWholeCondition(schema: JsonObject): boolean {
  return 'if' in schema === ('then' in schema || 'else' in schema);
}
