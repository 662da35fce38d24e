/** What the published schema says of a member of the document. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { Member } from './member.ts';

/** The keywords that are read. Conditions of the schema declare no member of their own. */
export interface SchemaNode {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly string[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  /** Marks a secret. */
  readonly writeOnly?: boolean;
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
export function schemaAt(steps: readonly Member['key'][]): SchemaNode | undefined {
  return steps.reduce<SchemaNode | undefined>((node, step) => node && below(node, step), ROOT);
}

/** Whether a value there may be a secret: one belongs there, or is among what belongs there. */
export function mayBeSecret(steps: readonly Member['key'][]): boolean {
  const node = schemaAt(steps);
  return node === undefined || holdsSecret(node);
}

/** Whether a mapping there stands in the place of a secret, or of what is not known. */
export function standsForSecret(steps: readonly Member['key'][]): boolean {
  const node = schemaAt(steps);
  return node === undefined || node.writeOnly === true;
}

/** Every name that the schema gives to a member, and every word that it gives to a value. */
export const NAMES: ReadonlySet<string> = new Set(
  nodesOf(ROOT).flatMap(({ properties }) => Object.keys(properties ?? {})),
);
export const WORDS: ReadonlySet<string> = new Set(
  nodesOf(ROOT).flatMap((node) =>
    [...(node.enum ?? []), ...(node.examples ?? [])].filter((word) => typeof word === 'string'),
  ),
);

function below(parent: SchemaNode, step: Member['key']): SchemaNode | undefined {
  if (parent === FREE) return FREE;
  const { properties, additionalProperties, items } = parent;
  const node = typeof step === 'number' ? items : (memberOf(properties, step) ?? open(additionalProperties));
  if (node !== undefined) return resolved(node);
  const isFree = parent.type === 'object' && properties === undefined && additionalProperties === undefined;
  return isFree && typeof step === 'string' ? FREE : undefined;
}

function memberOf(properties: SchemaNode['properties'], name: string): SchemaNode | undefined {
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function open(additional: SchemaNode['additionalProperties']): SchemaNode | undefined {
  return typeof additional === 'object' ? additional : undefined;
}

/** What a reference names, under the description that stands beside it. */
function resolved(node: SchemaNode): SchemaNode {
  const { $ref, ...own } = node;
  return $ref === undefined ? node : { ...SHARED[$ref.replace('#/$defs/', '')], ...own };
}

function holdsSecret({ writeOnly, properties = {}, additionalProperties, items }: SchemaNode): boolean {
  if (writeOnly === true) return true;
  return [...Object.values(properties), open(additionalProperties), items].some(
    (inner) => inner !== undefined && holdsSecret(resolved(inner)),
  );
}

/** A node and all below it. */
function nodesOf(node: SchemaNode): readonly SchemaNode[] {
  const { properties = {}, additionalProperties, items } = node;
  const inner = [...Object.values(properties), open(additionalProperties), items];
  return [node, ...inner.flatMap((one) => (one === undefined ? [] : nodesOf(resolved(one))))];
}
