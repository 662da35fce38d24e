import { isObject } from '../../json/object.ts';
import type { Json, JsonObject } from '../../json/types.ts';
import { KEYWORDS, type KeywordPlace } from './keywords.ts';

/** A schema inside a schema. */
export interface Subschema {
  readonly keyword: string;
  readonly place: KeywordPlace;
  /** Steps from the outer schema, the keyword first. */
  readonly steps: readonly (string | number)[];
  readonly schema: Json;
}

/** The schemas directly inside a schema. Values of the wrong shape are left to the meta-schema. */
export function subschemas(schema: JsonObject): readonly Subschema[] {
  const found: Subschema[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const rule = KEYWORDS.get(keyword);
    if (rule === undefined || rule.shape === 'value') continue;
    const { place } = rule;
    if (rule.shape === 'schema') found.push({ keyword, place, steps: [keyword], schema: value });
    else if (rule.shape === 'schemas' && Array.isArray(value))
      for (const [index, item] of (value as readonly Json[]).entries())
        found.push({ keyword, place, steps: [keyword, index], schema: item });
    else if (rule.shape === 'named' && isObject(value))
      for (const [name, item] of Object.entries(value))
        found.push({ keyword, place, steps: [keyword, name], schema: item });
  }
  return found;
}

/** A copy with every direct subschema replaced by what `change` makes of it. */
export function withSubschemas(schema: JsonObject, change: (inner: Subschema) => Json): JsonObject {
  const copy: Record<string, Json> = { ...schema };
  for (const inner of subschemas(schema)) {
    const [keyword, key] = inner.steps;
    if (typeof keyword !== 'string') continue;
    if (key === undefined) copy[keyword] = change(inner);
    else if (typeof key === 'number') {
      const list = copy[keyword];
      if (Array.isArray(list))
        copy[keyword] = (list as readonly Json[]).map((item, at) => (at === key ? change(inner) : item));
    } else {
      const named = copy[keyword];
      if (isObject(named)) copy[keyword] = { ...named, [key]: change(inner) };
    }
  }
  return copy;
}

/** The target of a local reference (`#`, `#/$defs/name`), or undefined. */
export function resolveReference(root: JsonObject, reference: Json): Json | undefined {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) return undefined;
  let node: Json | undefined = root;
  for (const token of reference.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!isObject(node) || !Object.hasOwn(node, name)) return undefined;
    node = node[name];
  }
  return node;
}

/** A schema and all that speak about the same value with it, references followed (they are acyclic) and `if` included. */
export function sameValue(schema: JsonObject, root: JsonObject): readonly JsonObject[] {
  const found: JsonObject[] = [schema];
  const parts = subschemas(schema)
    .filter(({ keyword, place }) => place === 'same' || keyword === 'if')
    .map((inner) => inner.schema);
  const target = schema['$ref'] === undefined ? undefined : resolveReference(root, schema['$ref']);
  for (const part of target === undefined ? parts : [...parts, target])
    if (isObject(part)) found.push(...sameValue(part, root));
  return found;
}
