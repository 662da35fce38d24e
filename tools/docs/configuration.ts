/**
 * Writes what follows from schemas/config.schema.json: tables of docs/configuration.md, and the
 * types of the document. `make format` runs it with `--write`; without, as in `make check`, it
 * exits with 1 when a file is not as the schema gives it.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import schema from '../../schemas/config.schema.json' with { type: 'json' };
import { documentTypes } from './document-types.ts';

export const DOCUMENT = join(import.meta.dirname, '../../docs/configuration.md');
export const TYPES = join(import.meta.dirname, '../../src/config/document/document.ts');

/**
 * A part of the schema. `markdownDescription` is what editors show of a key, and has up to three
 * paragraphs: what the key means, `Default:` where no value is one, and `Bounds:` where numbers
 * alone do not tell them. A key with this text has a row, and covers what is below it.
 */
interface Node {
  readonly $ref?: string;
  readonly markdownDescription?: string;
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, Node | false>>;
  readonly required?: readonly string[];
  readonly items?: Node;
  readonly additionalProperties?: Node | boolean;
  readonly default?: unknown;
  readonly writeOnly?: boolean;
  readonly 'x-reload'?: 'live';
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
  /** The default, or `required`, the bounds, and the marks `secret` and `restart`. */
  readonly bounds: string;
}

/** `<!-- keys of merchant -->`, its table, and the end. */
const TABLE = /(<!-- keys of ([^>]+) -->\n)[\s\S]*?(<!-- end of keys -->)/g;
const HEAD = '| Key | Meaning | Default, bounds, marks |\n|---|---|---|\n';

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
  // A reload takes over all that the definitions are used for.
  return paths.flatMap((path) => below(nodeAt(path), whole ? path : '', { isLive: path.startsWith('$defs') }));
}

/** The sections that the document has tables of. */
export function tablesIn(document: string): readonly string[] {
  return [...document.matchAll(TABLE)].map(([, , sections = '']) => sections);
}

function nodeAt(path: string): Node {
  const [first = '', ...rest] = path.split('.');
  const start = first === '$defs' ? (schema.$defs as object) : schema.properties;
  const steps = first === '$defs' ? rest : [first, ...rest];
  const found = steps.reduce<Node>((node, step, index) => {
    const members = index === 0 ? (start as Node['properties']) : node.properties;
    const member = members?.[step];
    if (member === undefined || member === false) throw new Error(`the schema has no ${path}`);
    return member;
  }, {});
  return found.$ref === undefined ? found : { ...nodeAt(found.$ref.replace('#/$defs/', '$defs.')), ...found };
}

/** What a key has from the one that it is in. */
interface Place {
  readonly isLive: boolean;
  readonly isRequired?: boolean;
  readonly isCovered?: boolean;
}

function below(node: Node, name: string, place: Place): readonly Key[] {
  const { markdownDescription: text, properties = {}, required = [], items } = node;
  const isLive = place.isLive || node['x-reload'] === 'live';
  const own = text === undefined ? [] : [keyOf(name, node, text, { ...place, isLive })];
  const covers = place.isCovered === true || own.length > 0;
  const inner = { isLive, isCovered: covers };
  const members = Object.entries(properties).flatMap(([member, child]) => {
    const isRequired = required.includes(member);
    return child === false ? [] : below(child, name === '' ? member : `${name}.${member}`, { ...inner, isRequired });
  });
  const ofItems = items?.properties === undefined ? [] : below(items, name === '' ? '' : `${name}[]`, inner);
  const found = [...own, ...members, ...ofItems];
  if (found.length === 0 && !covers) throw new Error(`${name} has no markdownDescription in the schema`);
  return found;
}

function keyOf(name: string, node: Node, text: string, { isLive, isRequired = false }: Place): Key {
  const [meaning = '', ...others] = text.split('\n\n');
  const said = (label: string): string | undefined =>
    others.find((part) => part.startsWith(`${label}: `))?.slice(label.length + 2);
  const usual = said('Default') ?? (isRequired ? 'required' : valueText(node.default, name));
  const bounds = said('Bounds') ?? boundsText(node, name);
  const marks = [isSecret(node) ? 'secret' : '', isLive ? '' : 'restart'];
  return { name, node, meaning, bounds: [usual, bounds, ...marks].filter((part) => part !== '').join('; ') };
}

function isSecret({ writeOnly, items, additionalProperties: open }: Node): boolean {
  return writeOnly === true || items?.writeOnly === true || (typeof open === 'object' && open.writeOnly === true);
}

function valueText(value: unknown, name: string): string {
  if (value === undefined || isDeepStrictEqual(value, {}) || isDeepStrictEqual(value, [])) return 'none';
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

if (import.meta.main)
  for (const [file, made] of [
    [DOCUMENT, withTables(readFileSync(DOCUMENT, 'utf8'))],
    [TYPES, documentTypes()],
  ] as const) {
    if (process.argv.includes('--write')) writeFileSync(file, made);
    else if (made !== readFileSync(file, 'utf8')) {
      process.stderr.write(`${file}: not as schemas/config.schema.json gives it; make format writes it\n`);
      process.exitCode = 1;
    }
  }
