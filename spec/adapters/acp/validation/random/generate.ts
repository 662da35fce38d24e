import { isObject, type Json, type JsonObject } from '../../../../../src/json/types.ts';
import type { Chance } from '../../../../../verification/chaos/sim/chance.ts';

/** How often an optional member is there, and how long lists get. */
const PRESENT = 0.35;
const MAX_ITEMS = 2;
/** Deeper than this only what is required is there. */
const SPARSE_DEPTH = 5;

/**
 * A right text for each format, and for each pattern (by where it stands) one that a generator
 * cannot guess.
 */
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  'date-time': ['2026-04-17T10:00:00Z', '2026-04-17T10:00:00.5-08:00'],
  uri: ['https://shop.example/a', 'urn:isbn:1', 'mailto:a@shop.example'],
  email: ['a@shop.example', 'a.b+c@sub.shop.example'],
};
const PATTERNED = ['2026-04-17', 'usd', 'discount', 'com.example.wrap@2026-04-17', '$.line_items', '$.a.b_c'];

/**
 * Makes documents that a schema allows, from its definitions. It knows the keywords that the
 * official schema uses; another one throws.
 */
export function createGenerator(definitions: JsonObject, chance: Chance): (name: string) => Json {
  const known = new Set([
    ...['$ref', 'type', 'enum', 'const', 'properties', 'required', 'additionalProperties', 'items', 'allOf', 'anyOf'],
    ...['oneOf', 'if', 'then', 'format', 'pattern', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems'],
    ...['uniqueItems', 'description', 'title', 'example', 'examples', 'default', 'deprecated', '$comment'],
  ]);

  const make = (schema: JsonObject, depth: number): Json => {
    const unknown = Object.keys(schema).find((keyword) => !known.has(keyword));
    if (unknown !== undefined) throw new Error(`the generator does not know the keyword ${unknown}`);
    if (typeof schema['$ref'] === 'string') return make(definitionOf(definitions, schema['$ref']), depth);
    if (Array.isArray(schema['allOf']) && schema['properties'] === undefined) return merged(schema, depth);
    if (Array.isArray(schema['oneOf']) && schema['properties'] === undefined)
      return make(chance.pick(schema['oneOf'] as readonly JsonObject[]), depth);
    if (schema['const'] !== undefined) return schema['const'];
    if (Array.isArray(schema['enum'])) return chance.pick(schema['enum'] as readonly Json[]);
    return makeOf(typeOf(schema), schema, depth);
  };

  const typeOf = ({ type }: JsonObject): string =>
    Array.isArray(type) ? chance.pick(type as readonly string[]) : typeof type === 'string' ? type : 'object';

  const merged = ({ allOf }: JsonObject, depth: number): Json =>
    Object.assign({}, ...(allOf as readonly JsonObject[]).map((part) => make(part, depth)));

  const makeOf = (type: string, schema: JsonObject, depth: number): Json => {
    switch (type) {
      case 'object':
        return objectOf(schema, depth);
      case 'array':
        return listOf(schema, depth);
      case 'string':
        return textOf(schema);
      case 'boolean':
        return chance.happens(0.5);
      default:
        return numberOf(type, schema);
    }
  };

  const objectOf = (schema: JsonObject, depth: number): Json => {
    const properties = (schema['properties'] ?? {}) as { readonly [name: string]: JsonObject };
    const form = Array.isArray(schema['anyOf']) ? chance.pick(schema['anyOf'] as readonly JsonObject[]) : {};
    const wanted = new Set([...namesIn(schema['required']), ...namesIn(form['required'])]);
    const present = depth > SPARSE_DEPTH ? 0 : PRESENT;
    const names = Object.keys(properties).filter((name) => wanted.has(name) || chance.happens(present));
    const members = names.map((name) => [name, make(properties[name] ?? {}, depth + 1)] as const);
    const others = schema['additionalProperties'];
    if (others === false || !chance.happens(present)) return Object.fromEntries(members);
    const other = isObject(others) ? make(others, depth + 1) : chance.pick<Json>([null, 1, 'x', [], { a: null }]);
    return Object.fromEntries([...members, ['zz_other', other]]);
  };

  const listOf = (schema: JsonObject, depth: number): Json => {
    const least = typeof schema['minItems'] === 'number' ? schema['minItems'] : 0;
    const length = Math.max(least, depth > SPARSE_DEPTH ? 0 : chance.below(MAX_ITEMS + 1));
    const items = isObject(schema['items']) ? schema['items'] : {};
    return Array.from({ length }, () => make(items, depth + 1));
  };

  const textOf = ({ format, pattern, minLength, maxLength }: JsonObject): Json => {
    if (typeof format === 'string') return chance.pick(FORMATS[format] ?? ['x']);
    if (typeof pattern === 'string') {
      const expression = new RegExp(pattern, 'u');
      return chance.pick(PATTERNED.filter((text) => expression.test(text)));
    }
    const least = typeof minLength === 'number' ? minLength : 0;
    const most = typeof maxLength === 'number' ? Math.min(maxLength, 8) : 8;
    return 'x'.repeat(least + chance.below(most - least + 1));
  };

  const numberOf = (type: string, { minimum, maximum }: JsonObject): Json => {
    const least = typeof minimum === 'number' ? minimum : -3;
    const most = typeof maximum === 'number' ? maximum : least + 6;
    const whole = least + chance.below(most - least + 1);
    return type === 'integer' || whole === most ? whole : whole + chance.pick([0, 0.5]);
  };

  return (name) => make(definitionOf(definitions, `#/$defs/${name}`), 0);
}

function definitionOf(definitions: JsonObject, reference: string): JsonObject {
  const definition = definitions[reference.replace('#/$defs/', '')];
  if (!isObject(definition)) throw new Error(`there is no definition ${reference}`);
  return definition;
}

function namesIn(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

/**
 * Names of members and values of lists that the definitions mention: what mutations put where it is
 * invalid.
 */
export function vocabularyOf(definitions: JsonObject): {
  readonly names: readonly string[];
  readonly words: readonly string[];
} {
  const [names, words] = [new Set<string>(), new Set<string>()];
  const walk = (value: Json): void => {
    if (Array.isArray(value)) for (const one of value as readonly Json[]) walk(one);
    if (!isObject(value)) return;
    if (isObject(value['properties'])) for (const name of Object.keys(value['properties'])) names.add(name);
    if (Array.isArray(value['enum'])) for (const word of value['enum'] as readonly Json[]) words.add(String(word));
    if (typeof value['const'] === 'string') words.add(value['const']);
    for (const [keyword, one] of Object.entries(value)) if (!keyword.startsWith('example')) walk(one);
  };
  walk(definitions);
  return { names: [...names], words: [...words] };
}
