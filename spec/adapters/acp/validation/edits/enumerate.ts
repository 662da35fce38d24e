import { isObject, type Json, type JsonObject } from '../../../../../src/json/types.ts';
import { type Path, pathsOf, valueAt, withValue } from '../random/mutate.ts';

/** One change of one node of our schemas. */
export interface Edit {
  readonly file: string;
  /** The definition in which it is: its name in the file. */
  readonly definition: string;
  /** `request.schema.json $defs/PaymentData/properties/due_date: drop format`. */
  readonly title: string;
  readonly schema: JsonObject;
}

/** The keyword's next value, and what it is called; undefined removes the keyword. */
type Change = readonly [what: string, keyword: string, value: Json | undefined];

/** Keywords whose absence is an edit. */
const DROPPED = [
  ...['type', 'enum', 'const', 'format', 'pattern', 'minLength', 'maxLength', 'minItems', 'minimum', 'maximum'],
  ...['uniqueItems', 'items', '$ref', 'anyOf', 'oneOf', 'discriminator', 'if', 'then', 'required', 'properties'],
];
const LIMITS = ['minLength', 'maxLength', 'minItems', 'minimum', 'maximum'];
/** A value that no list of the protocol has. */
const FOREIGN = 'zz_unknown';

/** Every single-point edit of a file, definition by definition. */
export function editsOf(file: string, schema: JsonObject): readonly Edit[] {
  const paths = pathsOf(schema).filter(([first, name]) => first === '$defs' && name !== undefined);
  return paths.flatMap((path) => {
    const node = valueAt(schema, path);
    if (!isObject(node) || !isSchema(path)) return [];
    return changesOf(node).map(([what, keyword, value]) => ({
      file,
      definition: String(path[1]),
      title: `${file.replace('.schema.json', '')} ${path.slice(1).join('/')}: ${what}`,
      schema: withKeyword(schema, path, node, keyword, value),
    }));
  });
}

/** Below `properties` and `$defs` stand names; everything else that is an object is a schema. */
function isSchema(path: Path): boolean {
  const last = path.at(-1);
  const isNameList = (last === 'properties' || last === '$defs') && !isSchemaName(path.slice(0, -1));
  return !isNameList && last !== 'discriminator';
}

/** Whether what stands here has its name from a document and not from JSON Schema. */
function isSchemaName(path: Path): boolean {
  const above = path.at(-2);
  return path.at(-1) === 'properties' && (above === 'properties' || above === '$defs');
}

function withKeyword(
  schema: JsonObject,
  path: Path,
  node: JsonObject,
  keyword: string,
  value: Json | undefined,
): JsonObject {
  const others = Object.fromEntries(Object.entries(node).filter(([name]) => name !== keyword));
  return withValue(schema, path, value === undefined ? others : { ...others, [keyword]: value }) as JsonObject;
}

function changesOf(node: JsonObject): readonly Change[] {
  return [
    ...DROPPED.filter((keyword) => node[keyword] !== undefined).map(
      (keyword): Change => [`drop ${keyword}`, keyword, undefined],
    ),
    ...LIMITS.flatMap((keyword) => limitChanges(keyword, node[keyword])),
    ...requiredChanges(node),
    ...opennessChanges(node),
    ...typeChanges(node['type']),
    ...listChanges('enum', node['enum'], FOREIGN),
    ...['anyOf', 'oneOf'].flatMap((keyword) => listChanges(keyword, node[keyword])),
    ...memberChanges(node['properties']),
    ...swapChanges(node),
  ];
}

function limitChanges(keyword: string, limit: Json | undefined): readonly Change[] {
  if (typeof limit !== 'number') return [];
  const less: readonly Change[] = limit === 0 && keyword !== 'minimum' ? [] : [[`${keyword} - 1`, keyword, limit - 1]];
  return [[`${keyword} + 1`, keyword, limit + 1], ...less];
}

function requiredChanges({ required, properties }: JsonObject): readonly Change[] {
  const names = Array.isArray(required) ? (required as readonly string[]) : [];
  const optional = isObject(properties) ? Object.keys(properties).filter((name) => !names.includes(name)) : [];
  return [
    ...names.map((name): Change => [`un-require ${name}`, 'required', names.filter((other) => other !== name)]),
    ...optional.map((name): Change => [`require ${name}`, 'required', [...names, name]]),
  ];
}

function opennessChanges({ type, additionalProperties: others, properties }: JsonObject): readonly Change[] {
  if (others === false) return [['open', 'additionalProperties', undefined]];
  if (others !== undefined)
    return [
      ['open', 'additionalProperties', undefined],
      ['close', 'additionalProperties', false],
    ];
  return type === 'object' && properties !== undefined ? [['close', 'additionalProperties', false]] : [];
}

function typeChanges(type: Json | undefined): readonly Change[] {
  if (Array.isArray(type)) {
    const types = type as readonly string[];
    return [
      ['nullable', 'type', [...types, 'null']],
      ...types.map((one): Change => [`type without ${one}`, 'type', types.filter((other) => other !== one)]),
    ];
  }
  if (typeof type !== 'string') return [];
  const other = { integer: 'number', number: 'integer' }[type];
  return [
    ['nullable', 'type', [type, 'null']],
    ...(other === undefined ? [] : [[`type ${other}`, 'type', other] as const]),
  ];
}

function listChanges(keyword: string, list: Json | undefined, added?: string): readonly Change[] {
  if (!Array.isArray(list)) return [];
  const values = list as readonly Json[];
  const fewer =
    values.length === 1
      ? []
      : values.map(
          (value): Change => [
            `${keyword} without ${JSON.stringify(value)}`,
            keyword,
            values.filter((other) => other !== value),
          ],
        );
  return added === undefined ? fewer : [...fewer, [`${keyword} with ${added}`, keyword, [...values, added]]];
}

function memberChanges(properties: Json | undefined): readonly Change[] {
  if (!isObject(properties)) return [];
  return Object.keys(properties).map((name) => [
    `forget ${name}`,
    'properties',
    Object.fromEntries(Object.entries(properties).filter(([other]) => other !== name)),
  ]);
}

/** anyOf for oneOf and the other way round: the value moves to the other keyword. */
function swapChanges({ anyOf }: JsonObject): readonly Change[] {
  return anyOf === undefined ? [] : [['also oneOf', 'oneOf', anyOf]];
}
