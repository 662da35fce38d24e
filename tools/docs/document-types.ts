/** The types of src/config/document/document.ts, from schemas/config.schema.json. */

import schema from '../../schemas/config.schema.json' with { type: 'json' };

const HEAD = `/**
 * The document behind its check: what may be left out and has a default is there. Written by
 * make format from schemas/config.schema.json, whose texts tell what each key means.
 */

import type { Json, JsonObject } from '../../json/json.ts';

/** A resource as a file has it. */
export type WrittenResource = Partial<Omit<ResourceDocument, 'backend'>> &
  Pick<ResourceDocument, 'name' | 'pricing'> & {
    readonly backend: Partial<ResourceDocument['backend']> & Pick<ResourceDocument['backend'], 'method' | 'path'>;
  };
`;

/** Names of definitions that become interfaces; others are written out where they are used. */
const INTERFACES: ReadonlyMap<string, string> = new Map([
  ['x402', 'X402Document'],
  ['resource', 'ResourceDocument'],
  ['checkoutOperation', 'CheckoutOperationDocument'],
]);
const LINE_WIDTH = 120;

/** What a branch of a condition asks of members; `false`: the member is not there. */
interface Branch {
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, false>>;
}

interface Condition {
  readonly if: { readonly properties: Readonly<Record<string, { readonly const: unknown }>> };
  readonly then: Branch;
  readonly else: Branch;
}

interface Node extends Partial<Condition> {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Node | false>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Node | boolean;
  readonly items?: Node;
  readonly default?: unknown;
  readonly allOf?: readonly Condition[];
  /** Follows from other keys where it is missing: sections/short-form.ts writes it. */
  readonly 'x-derived'?: boolean;
}

const DEFINITIONS = schema.$defs as unknown as Readonly<Record<string, Node>>;

export function documentTypes(): string {
  const interfaces = [...INTERFACES].map(([name, type]) => interfaceOf(type, DEFINITIONS[name] ?? {}));
  return [HEAD, interfaceOf('ConfigDocument', schema as unknown as Node), ...interfaces].join('\n');
}

function interfaceOf(name: string, node: Node): string {
  return `export interface ${name} {\n${linesOf(membersOf(node), '  ')}}\n`;
}

function linesOf(members: readonly Member[], indent: string): string {
  return members.map((member) => `${indent}${memberText(member, indent)};\n`).join('');
}

interface Member {
  readonly name: string;
  readonly node: Node;
  readonly isOptional: boolean;
}

function membersOf({ properties = {}, required = [] }: Node): readonly Member[] {
  return Object.entries(properties).flatMap(([name, node]) => {
    if (node === false) return [];
    const isThere = required.includes(name) || node.default !== undefined || node['x-derived'] === true;
    return [{ name, node, isOptional: !isThere }];
  });
}

function memberText({ name, node, isOptional }: Member, indent: string | undefined): string {
  const start = `readonly ${name}${isOptional ? '?' : ''}:`;
  return fitted((at) => `${start} ${typeOf(node, at)}`.replace(/: \n/, ':\n'), indent);
}

/** On one line where it fits; `text`: at an indent, or on one line. */
function fitted(text: (indent: string | undefined) => string, indent: string | undefined): string {
  const line = text(undefined);
  return indent === undefined || indent.length + line.length < LINE_WIDTH ? line : text(indent);
}

/** `indent`: of the line that the type begins on; undefined: all of it is one line. */
function typeOf(node: Node, indent: string | undefined): string {
  const { $ref, type, properties, items, additionalProperties: open } = node;
  if ($ref !== undefined && typeof type !== 'object' && type !== 'array') {
    const name = $ref.replace('#/$defs/', '');
    return INTERFACES.get(name) ?? typeOf(DEFINITIONS[name] ?? {}, indent);
  }
  const words = node.const === undefined ? node.enum : [node.const];
  if (words !== undefined) return words.map((word) => (typeof word === 'string' ? `'${word}'` : word)).join(' | ');
  if (Array.isArray(type)) {
    // The long form has a mapping in the place of the text.
    const types = type.filter((one) => !(node['x-derived'] && one === 'string'));
    return union(
      types.map((one) => (at) => typeOf({ ...node, type: one }, at)),
      indent,
    );
  }
  if (type === 'array') {
    const item = typeOf(items ?? {}, indent);
    return (items?.enum?.length ?? 1) > 1 ? `readonly (${item})[]` : `readonly ${item}[]`;
  }
  if (type === 'integer') return 'number';
  if (type !== 'object') return typeof type === 'string' ? type : 'Json';
  if (properties !== undefined) return union(variantsOf(node), indent);
  return typeof open === 'object' ? `Readonly<Record<string, ${typeOf(open, indent)}>>` : 'JsonObject';
}

type Text = (indent: string | undefined) => string;

function union(types: readonly Text[], indent: string | undefined): string {
  if (types.length === 1 || indent === undefined) return types.map((type) => type(indent)).join(' | ');
  const deeper = `${indent}  `;
  const lines = types.map((type) => `\n${deeper}| ${fitted((at) => type(at && `${deeper}  `), deeper)}`);
  return lines.join('');
}

/** A mapping; where a key of a few words decides which others it has, one for each word. */
function variantsOf(node: Node): readonly Text[] {
  const members = membersOf(node);
  const conditions = [...(node.if === undefined ? [] : [node as Condition]), ...(node.allOf ?? [])];
  const [deciding] = conditions.flatMap((condition) => Object.keys(condition.if.properties));
  if (deciding === undefined) return [mapping(members)];
  return (members.find(({ name }) => name === deciding)?.node.enum ?? []).map((word) => {
    const branches = conditions.map((condition) =>
      condition.if.properties[deciding]?.const === word ? condition.then : condition.else,
    );
    const required = branches.flatMap((branch) => branch.required ?? []);
    const absent = branches.flatMap((branch) => Object.keys(branch.properties ?? {}));
    return mapping(
      members
        .filter(({ name }) => !absent.includes(name))
        .map((member) => ({ ...member, isOptional: member.isOptional && !required.includes(member.name) }))
        .map((member) => (member.name === deciding ? { ...member, node: { const: word } } : member)),
    );
  });
}

function mapping(members: readonly Member[]): Text {
  return (indent) =>
    indent === undefined
      ? `{ ${members.map((member) => memberText(member, undefined)).join('; ')} }`
      : `{\n${linesOf(members, `${indent}  `)}${indent}}`;
}
