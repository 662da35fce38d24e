/** The members of a document: what the published schema says of them, and how they are named. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import { memberPath } from '../../problems/problem.ts';

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
  readonly writeOnly?: boolean;
  readonly 'x-form'?: string;
  readonly 'x-reload'?: 'live';
}

const ROOT = schema as SchemaNode;
const SHARED = schema.$defs as unknown as Readonly<Record<string, SchemaNode>>;
/** The schema of values that an operator may write freely, such as the schema of an input. */
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

/** Visits the texts of a document that have a schema, with their paths. */
export function eachText(document: unknown, visit: (text: string, node: SchemaNode, path: () => string) => void): void {
  const steps: Step[] = [];
  const path = (): string => steps.reduce<string>(memberPath, '');
  const walk = (value: unknown, node: SchemaNode): void => {
    if (typeof value === 'string') visit(value, node, path);
    if (value === null || typeof value !== 'object') return;
    for (const name of Object.keys(value)) {
      const step = Array.isArray(value) ? Number(name) : name;
      const inner = below(node, step);
      if (inner === undefined || inner === FREE) continue;
      steps.push(step);
      walk((value as Mapping)[name], inner);
      steps.pop();
    }
  };
  walk(document, ROOT);
}

/** References, with the schemas that they name and the description that stands beside them. */
const REFERENCES = new Map<SchemaNode, SchemaNode>();

function resolved(node: SchemaNode): SchemaNode {
  if (node.$ref === undefined) return node;
  const known = REFERENCES.get(node);
  if (known !== undefined) return known;
  const { $ref, ...own } = node;
  const whole = { ...SHARED[$ref.replace('#/$defs/', '')], ...own };
  REFERENCES.set(node, whole);
  return whole;
}

/** Every name that the schema gives to a member. */
const NAMES: ReadonlySet<string> = new Set(namesBelow(ROOT));

function namesBelow({ properties = {}, additionalProperties, items }: SchemaNode): readonly string[] {
  const inner = [...Object.values(properties), additionalProperties, items].filter((one) => typeof one === 'object');
  return [...Object.keys(properties), ...inner.flatMap((one) => namesBelow(resolved(one)))];
}

/**
 * The part of a key that a message may quote. A key that the schema does not name may be a piece of
 * a value, most likely if it has no value itself (`bare`).
 */
export function toldName(name: string, bare: boolean): string {
  if (NAMES.has(name)) return name;
  const told = bare ? '' : (/^[A-Za-z0-9_.$/@-]{0,64}/.exec(name)?.[0] ?? '');
  return told.length === name.length ? name : `${told}…`;
}

/** Shorter values are not masked, characters: they would hide ordinary text. */
const SHORTEST_SECRET = 8;
/** Shorter parts of a URL's path are names, not keys, characters. */
const SHORTEST_KEY_IN_PATH = 16;
/** 32 bytes as base64 or base64url. */
export const KEY_TEXT = /^[A-Za-z0-9+/_-]{43}=?$/;

/**
 * The values that the schema marks with `writeOnly`, but for short ones, in each spelling that a
 * message may use. None is logged on purpose; the log masks them as a last resort.
 */
export function secretsIn(document: unknown): readonly string[] {
  const found = new Set<string>();
  eachText(document, (text, { writeOnly }) => {
    if (writeOnly === true) for (const one of spellings(text)) found.add(one);
  });
  return [...found].filter((secret) => secret.length >= SHORTEST_SECRET);
}

function spellings(secret: string): readonly string[] {
  // Line by line, because a message seldom echoes the whole PEM. In a variable \n ends its lines.
  if (secret.includes('-----BEGIN')) return secret.split(/\r?\n|\\n/).filter((line) => !line.startsWith('-----'));
  if (/^[a-z]+:\/\//i.test(secret) && URL.canParse(secret)) return urlSecrets(new URL(secret));
  const bytes = Buffer.from(KEY_TEXT.test(secret) ? secret : '', 'base64');
  const asKey = [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url'), bytes.toString('hex')];
  return [secret, secret.replace(/^0x/, ''), ...asKey];
}

/** Passwords, and the long parts of path and query where node providers put their keys. */
function urlSecrets({ password, searchParams, pathname }: URL): readonly string[] {
  const inPath = pathname.split('/').filter((part) => part.length >= SHORTEST_KEY_IN_PATH);
  return [password, decodeURIComponent(password), ...searchParams.values(), ...inPath];
}
