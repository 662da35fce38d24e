/**
 * Writes the tables of keys in docs/configuration.md from schemas/config.schema.json:
 * `node tools/docs/configuration.ts --write`, which `make format` runs. Without `--write` it exits
 * with 1 when the tables are not those of the schema.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import schema from '../../schemas/config.schema.json' with { type: 'json' };

export const DOCUMENT = join(import.meta.dirname, '../../docs/configuration.md');

/**
 * A part of the schema. `markdownDescription` is what editors show of a key, and has up to three
 * paragraphs: what the key means, `Default:` where no value is one, and `Bounds:` where numbers
 * alone do not tell them. A key with this text has a row, and covers what is below it.
 */
interface Node {
  readonly markdownDescription?: string;
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, Node | false>>;
  readonly required?: readonly string[];
  readonly items?: Node;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

/** A key of the configuration, and the row that tells of it. */
interface Key {
  /** From the section of its table on, as in `backend.path` or `issuers[].id`. */
  readonly name: string;
  readonly node: Node;
  readonly meaning: string;
  /** The default, or `required`, and the bounds. */
  readonly bounds: string;
}

/** `<!-- keys of merchant -->`, its table, and the end. */
const TABLE = /(<!-- keys of ([^>]+) -->\n)[\s\S]*?(<!-- end of keys -->)/g;
const HEAD = '| Key | Meaning | Default and bounds |\n|---|---|---|\n';

/** The document with the tables of the schema. @throws Error that names a key without a text */
export function withTables(document: string): string {
  return document.replaceAll(TABLE, (_, begin: string, sections: string, end: string) => {
    const rows = keysOf(sections).map(({ name, meaning, bounds }) => `| \`${name}\` | ${meaning} | ${bounds} |\n`);
    return `${begin}\n${HEAD}${rows.join('')}\n${end}`;
  });
}

/**
 * The keys of the sections of one table. Names are whole paths, but for a single section below the
 * first level and for definitions, whose names the document gives itself.
 */
export function keysOf(sections: string): readonly Key[] {
  const paths = sections.split(', ');
  const whole = paths.length > 1 || !sections.includes('.');
  return paths.flatMap((path) => below(nodeAt(path), whole ? path : ''));
}

/** The sections that the document has tables of. */
export function tablesIn(document: string): readonly string[] {
  return [...document.matchAll(TABLE)].map(([, , sections = '']) => sections);
}

function nodeAt(path: string): Node {
  const [first = '', ...rest] = path.split('.');
  const start = first === '$defs' ? (schema.$defs as object) : schema.properties;
  const steps = first === '$defs' ? rest : [first, ...rest];
  return steps.reduce<Node>((node, step, index) => {
    const members = index === 0 ? (start as Node['properties']) : node.properties;
    const member = members?.[step];
    if (member === undefined || member === false) throw new Error(`the schema has no ${path}`);
    return member;
  }, {});
}

function below(node: Node, name: string, isRequired = false, isCovered = false): readonly Key[] {
  const { markdownDescription: text, properties = {}, required = [], items } = node;
  const own = text === undefined ? [] : [keyOf(name, node, text, isRequired)];
  const covers = isCovered || own.length > 0;
  const members = Object.entries(properties).flatMap(([member, child]) =>
    child === false ? [] : below(child, name === '' ? member : `${name}.${member}`, required.includes(member), covers),
  );
  const ofItems = items?.properties === undefined ? [] : below(items, name === '' ? '' : `${name}[]`, false, covers);
  const found = [...own, ...members, ...ofItems];
  if (found.length === 0 && !covers) throw new Error(`${name} has no markdownDescription in the schema`);
  return found;
}

function keyOf(name: string, node: Node, text: string, isRequired: boolean): Key {
  const [meaning = '', ...others] = text.split('\n\n');
  const said = (label: string): string | undefined =>
    others.find((part) => part.startsWith(`${label}: `))?.slice(label.length + 2);
  const usual = said('Default') ?? (isRequired ? 'required' : valueText(node.default, name));
  const bounds = said('Bounds') ?? boundsText(node, name);
  return { name, node, meaning, bounds: bounds === '' ? usual : `${usual}; ${bounds}` };
}

function valueText(value: unknown, name: string): string {
  if (value === undefined) return 'none';
  if (typeof value === 'number') return numberText(value, name);
  if (Array.isArray(value)) return `\`[${value.join(', ')}]\``;
  return `\`${String(value)}\``;
}

/** Ports are written as they are in URLs. */
function numberText(value: number, name: string): string {
  return name.endsWith('port') ? String(value) : value.toLocaleString('en-US');
}

function boundsText(node: Node, name: string): string {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, items } = node;
  const range = (least: number | undefined, most: number | undefined, unit: string): string => {
    if (most === undefined) return '';
    const end = `${numberText(most, name)}${unit}`;
    return least === undefined ? `at most ${end}` : `${numberText(least, name)}–${end}`;
  };
  const own = [
    range(minimum, maximum, ''),
    range(minLength, maxLength, ' characters'),
    range(minItems, maxItems, ''),
  ].join('');
  const each = own === '' || items === undefined || items.properties !== undefined ? '' : boundsText(items, name);
  return each === '' ? own : `${own}, each ${each}`;
}

if (import.meta.main) {
  const before = readFileSync(DOCUMENT, 'utf8');
  const after = withTables(before);
  if (process.argv.includes('--write')) writeFileSync(DOCUMENT, after);
  else if (after !== before) {
    process.stderr.write('docs/configuration.md: its tables are not those of the schema; make format writes them\n');
    process.exitCode = 1;
  }
}
