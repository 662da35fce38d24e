/** The members of a document: what the published schema says of them, and how they are named. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };

/** A mapping of a document that no schema has judged yet. */
export type Mapping = Readonly<Record<string, unknown>>;

/** Whether a value has members; a list has items. */
export function isMapping(value: unknown): value is Mapping {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** A key of a mapping, or a position in a list. */
export type Step = string | number;

/** The keywords that are read. Conditions of the schema declare no member of their own. */
export interface SchemaNode {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly examples?: readonly string[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: SchemaNode | boolean;
  readonly items?: SchemaNode;
  readonly $ref?: string;
}

const ROOT = schema as SchemaNode;
const SHARED = schema.$defs as unknown as Readonly<Record<string, SchemaNode>>;
/** Of what an operator may write freely, such as the schema of an input. */
const FREE: SchemaNode = {};

/** Undefined for a member that the schema does not know. */
export function schemaAt(steps: readonly Step[]): SchemaNode | undefined {
  return steps.reduce<SchemaNode | undefined>((node, step) => node && below(node, step), ROOT);
}

function below(parent: SchemaNode, step: Step): SchemaNode | undefined {
  if (parent === FREE) return FREE;
  const { properties = {}, additionalProperties: open, items } = parent;
  const named = Object.hasOwn(properties, step) ? properties[step] : open;
  const node = typeof step === 'number' ? items : named;
  if (typeof node === 'object') return resolved(node);
  const isFree = parent.type === 'object' && parent.properties === undefined && open === undefined;
  return isFree && typeof step === 'string' ? FREE : undefined;
}

/** The schema that a reference names, with the description that stands beside the reference. */
function resolved({ $ref, ...own }: SchemaNode): SchemaNode {
  return $ref === undefined ? own : { ...SHARED[$ref.replace('#/$defs/', '')], ...own };
}

/** Every name that the schema gives to a member. */
const NAMES: ReadonlySet<string> = new Set(namesBelow(ROOT));

function namesBelow({ properties = {}, additionalProperties, items }: SchemaNode): readonly string[] {
  const inner = [...Object.values(properties), additionalProperties, items].filter((one) => typeof one === 'object');
  return [...Object.keys(properties), ...inner.flatMap((one) => namesBelow(resolved(one)))];
}

/**
 * What of a key may be told. One that the schema does not name may be a piece of a value, and most
 * likely is where it has no value itself (`bare`).
 */
export function toldName(name: string, bare: boolean): string {
  if (NAMES.has(name)) return name;
  const told = bare ? '' : (/^[A-Za-z0-9_.$/@-]{0,64}/.exec(name)?.[0] ?? '');
  return told.length === name.length ? name : `${told}…`;
}
