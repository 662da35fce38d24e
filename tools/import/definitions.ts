/** Writes what stands in an input schema several times once, under `$defs`. */

import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { subschemas, withSubschemas } from '../../src/resources/schemas/keywords.ts';
import { MAX_SUBSCHEMAS } from '../../src/resources/schemas/schema-check.ts';

/** Shorter ones are easier to read where they stand, characters of JSON. */
const SHORTEST = 200;

/**
 * `names`: of schemas that are the same object wherever they stand. A schema that would have too
 * many by its definitions, which the gateway counts on top of their uses, is left without them.
 */
export function withDefinitions(schema: JsonObject, names: ReadonlyMap<JsonObject, string>): JsonObject {
  const uses = new Map<JsonObject, number>();
  const sizes = new Map<JsonObject, number>();
  const sizeOf = (node: Json): number => {
    if (!isObject(node)) return 1;
    uses.set(node, (uses.get(node) ?? 0) + 1);
    const known = sizes.get(node);
    if (known !== undefined) return known;
    const size = subschemas(node).reduce((sum, inner) => sum + sizeOf(inner.schema), 1);
    sizes.set(node, size);
    return size;
  };
  let total = sizeOf(schema);
  const definitions = new Map<JsonObject, string>();
  const taken = new Set<string>();
  for (const [node, times] of uses) {
    const name = names.get(node);
    if (name === undefined || times < 2 || JSON.stringify(node).length < SHORTEST) continue;
    const legal = name.replaceAll(/[^\w.-]+/g, '_').slice(0, 64) || 'schema';
    const free = taken.has(legal) ? `${legal}_${taken.size}` : legal;
    taken.add(free);
    definitions.set(node, free);
    total += sizes.get(node) ?? 0;
  }
  if (definitions.size === 0 || total > MAX_SUBSCHEMAS) return schema;
  const shared = (node: Json): Json => {
    if (!isObject(node)) return node;
    const name = definitions.get(node);
    return name === undefined ? inside(node) : { $ref: `#/$defs/${name}` };
  };
  const inside = (node: JsonObject): JsonObject => withSubschemas(node, ({ schema: part }) => shared(part));
  return { ...inside(schema), $defs: Object.fromEntries([...definitions].map(([node, name]) => [name, inside(node)])) };
}
