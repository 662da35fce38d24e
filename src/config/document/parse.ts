/** Reads the text of a configuration, JSON or strict YAML, and places problems in it. */

import { readFileSync, statSync } from 'node:fs';
import { type Document, isAlias, isCollection, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import { endOfString } from '../../json/json.ts';
import { ConfigError, type ConfigProblem, memberPath, type ProblemPlace, pathsAbove } from '../../problems/problem.ts';
import { schemaAt, toldName } from './member.ts';

/** Largest configuration file, bytes: 10,000 resources with schemas of a page each, in JSON. */
export const MAX_CONFIG_BYTES = 16_777_216;
/** Deepest nesting of the document, levels: above any JSON Schema that a person writes. */
export const MAX_CONFIG_DEPTH = 64;
/** The configuration file unless an argument or the environment names one. */
const DEFAULT_CONFIG_PATH = 'config.yaml';

/** Meanings of the commonest error codes of the system. */
const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: ': there is no such file',
  EACCES: ': this user has no right to read it',
};

/** The process environment, passed in: nothing here reads `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

export function configPath(argument: string | undefined, env: Environment): string {
  return argument || env['AGENT_COMMERCE_CONFIG'] || DEFAULT_CONFIG_PATH;
}

/** @throws ConfigError when the file cannot be read, is too large or is not UTF-8 */
export function readConfigFile(path: string): string {
  return readBoundedFile(path, MAX_CONFIG_BYTES, (message, at) =>
    at === undefined
      ? new ConfigError([{ path: 'document', message: `${path} ${message}` }])
      : new ConfigError([{ path: 'document', message, place: { file: path, ...at } }]),
  );
}

/**
 * Reads a regular UTF-8 file of bounded size; `fault` makes the caller's error from a message that
 * follows the path, and from the place of a wrong byte.
 */
export function readBoundedFile(
  path: string,
  maxBytes: number,
  fault: (message: string, at?: { readonly line: number; readonly column: number }) => Error,
): string {
  let bytes: Buffer;
  try {
    const stat = statSync(path);
    // A pipe or a device would block the start for ever.
    if (!stat.isFile()) throw fault('is not a regular file');
    if (stat.size > maxBytes) throw fault(`is larger than ${maxBytes} bytes`);
    bytes = readFileSync(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) throw error;
    throw fault(`cannot be read (${error.code})${UNREADABLE[error.code] ?? ''}`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // A byte that is none of UTF-8 becomes this character.
    const lines = bytes.toString('utf8').split('\n');
    const line = lines.findIndex((text) => text.includes('\ufffd'));
    const column = (lines[line] ?? '').indexOf('\ufffd') + 1;
    throw fault('is not UTF-8; save it as UTF-8', { line: line + 1, column });
  }
}

/** The certificates of a PEM text. */
export function pemCertificates(text: string): readonly string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

/** Most that the YAML parser reads, bytes: a second and 60 MB. */
export const MAX_YAML_BYTES = 1_048_576;

/** A text that was read as a document. */
export interface ReadDocument {
  readonly value: unknown;
  readonly text: string;
  /** The name of the file as given; undefined for a text that is no file. */
  readonly file: string | undefined;
  /** In the order of the text. */
  readonly members: () => Iterable<Member>;
}

/** A key of a mapping or an item of a list, behind the member that it is in. */
interface Member {
  /** The number of members that it is in. */
  readonly depth: number;
  readonly key: string | number;
  /** UTF-16 code units. */
  readonly offset: number;
  /** Whether it is a key without a value. */
  readonly bare: boolean;
  /** Why it is refused. */
  readonly fault: string | undefined;
}

/**
 * One YAML 1.2 or JSON document as plain values. Refused: duplicate keys, keys that are no strings,
 * tags, several documents, and aliases, because a few lines of them expand to gigabytes. `file`:
 * its name in the places of problems.
 * @throws ConfigError for a text that is no such document
 */
export function readConfigText(text: string, file?: string): ReadDocument {
  const { value, members, faults } = readJson(text) ?? readYaml(text);
  if (faults.length === 0) return { value, text, file, members };
  const lines = linesOf(text);
  throw new ConfigError(
    faults.map(({ path = 'document', message, offset }) => ({ path, message, place: placeAt(offset, lines, file) })),
  );
}

/** The plain values alone. @throws ConfigError */
export function parseConfigText(text: string): unknown {
  return readConfigText(text).value;
}

interface Fault {
  readonly path?: string;
  readonly message: string;
  readonly offset: number;
}

interface Reading extends Pick<ReadDocument, 'value' | 'members'> {
  readonly faults: readonly Fault[];
}

/**
 * Reads a JSON object; undefined for a text that the YAML parser has to read. That parser reads
 * JSON too, but too slowly for thousands of resources that a program writes.
 */
function readJson(text: string): Reading | undefined {
  const mustBeJson = Buffer.byteLength(text) > MAX_YAML_BYTES;
  if (!mustBeJson && !/^\s*\{/.test(text)) return undefined;
  const members = () => jsonMembers(text);
  try {
    const value: unknown = JSON.parse(text);
    return { value, members, faults: faultsOf(members) };
  } catch (error) {
    if (!mustBeJson) return undefined;
    // The rest of the message may quote the text, which may hold a secret.
    const [, at = 0] = /at position (\d+)/.exec(String(error)) ?? [];
    const message = `has more than ${MAX_YAML_BYTES} bytes, so it must be JSON, and is not well-formed`;
    return { value: undefined, members, faults: [{ message, offset: Number(at) }] };
  }
}

function readYaml(text: string): Reading {
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    // Checked here: the parser takes half a minute for a megabyte of keys.
    uniqueKeys: false,
    stringKeys: true,
    prettyErrors: false,
    // `silent` would also silence the error of a second document.
    logLevel: 'error',
  });
  const members = () => yamlMembers(document.contents);
  const faults = [...yamlFaults(text, document), ...(document.errors.length > 0 ? [] : faultsOf(members))];
  return { value: faults.length > 0 ? undefined : document.toJS({ maxAliasCount: 0 }), members, faults };
}

function faultsOf(members: () => Generator<Member>): readonly Fault[] {
  // Most texts have no fault: the paths of their members are not made.
  if (!members().some(({ fault }) => fault !== undefined)) return [];
  return [...withPaths(members())].flatMap(({ path, fault, offset }) =>
    fault === undefined ? [] : [{ path, message: fault, offset }],
  );
}

/**
 * `path`: with keys as `toldName` quotes them; `whole`: with the member's own key in full. `among`:
 * members below other paths are left out.
 */
function* withPaths(members: Iterable<Member>, among?: ReadonlySet<string>) {
  const above: (string | undefined)[] = [''];
  for (const { depth, key, bare, offset, fault } of members) {
    const parent = above[depth];
    above[depth + 1] = undefined;
    if (parent === undefined) continue;
    const told = typeof key === 'number' ? key : toldName(key, bare);
    const path = memberPath(parent, told);
    if (among === undefined || among.has(path)) above[depth + 1] = path;
    yield { path, whole: told === key ? path : memberPath(parent, key), offset, fault };
  }
}

const TWICE = 'stands twice in one mapping; keep one';
const ALIAS = 'is an alias (*name), which is not read; write the value out';

const SPACE = 0x20;
/** A number, or a word. */
const LITERAL = /[^\s{}[\]:,"]+/y;

/** The end of a text, a bracket, a comma, a colon, or any other literal. */
function endOfLexeme(text: string, start: number): number {
  if (text[start] === '"') return endOfString(text, start);
  LITERAL.lastIndex = start;
  return LITERAL.test(text) ? LITERAL.lastIndex : start + 1;
}

/** Members of a well-formed JSON text, but for those nested too deeply: `expand` refuses them. */
function* jsonMembers(text: string): Generator<Member> {
  const open: { readonly names: Set<string>; key: string | number | undefined; offset: number }[] = [];
  for (let offset = 0, end = 0; offset < text.length; offset = end) {
    end = endOfLexeme(text, offset);
    if (text.charCodeAt(offset) <= SPACE) continue;
    const first = text[offset];
    const top = open.at(-1);
    const key = top?.key;
    if (first === '}' || first === ']') open.pop();
    else if (first === ':') continue;
    else if (top !== undefined && first === ',') top.key = typeof key === 'number' ? key + 1 : undefined;
    else if (top !== undefined && key === undefined) {
      const name = text.slice(offset + 1, end - 1);
      top.key = name.includes('\\') ? String(JSON.parse(`"${name}"`)) : name;
      top.offset = offset;
    } else {
      if (top !== undefined && key !== undefined && open.length <= MAX_CONFIG_DEPTH) {
        const member = { depth: open.length - 1, key, bare: first === 'n' };
        if (typeof key === 'number') yield { ...member, offset, fault: undefined };
        else {
          yield { ...member, offset: top.offset, fault: top.names.has(key) ? TWICE : undefined };
          top.names.add(key);
        }
      }
      if (first === '{' || first === '[') open.push({ names: new Set(), key: first === '[' ? 0 : undefined, offset });
    }
  }
}

function* yamlMembers(node: unknown, depth = 0, name: Member['key'] = 'document'): Generator<Member> {
  if (depth > MAX_CONFIG_DEPTH) return;
  if (isAlias(node)) yield { depth: depth - 1, key: name, offset: node.range?.[0] ?? 0, bare: false, fault: ALIAS };
  const names = new Set<Member['key']>();
  const pairs = isMap(node) ? node.items : isSeq(node) ? node.items.map((value, key) => ({ key, value })) : [];
  for (const pair of pairs) {
    const { key: node, value } = pair;
    const key = isScalar(node) ? String(node.value) : Number(node);
    const { range } = (isScalar(node) ? node : value) as { readonly range?: readonly number[] | null };
    const bare = value === null || (isScalar(value) && value.value === null);
    yield { depth, key, offset: range?.[0] ?? 0, bare, fault: names.has(key) ? TWICE : undefined };
    names.add(key);
    yield* yamlMembers(value, depth + 1, key);
  }
}

/** The problems with their places in a text, in its order; those without a place come last. */
export function placed({ problems }: ConfigError, { text, file, members }: ReadDocument): ConfigError {
  // A missing member has the place of the nearest mapping above it.
  const candidates = problems.map(({ path }) => [path, ...pathsAbove(path).toReversed()]);
  const wanted = new Set(candidates.flat());
  const offsets = new Map<string, number>();
  for (const { path, whole, offset } of withPaths(members(), wanted))
    for (const name of [whole, path]) if (wanted.has(name) && !offsets.has(name)) offsets.set(name, offset);
  const lines = linesOf(text);
  const places = problems.map((problem, at): ConfigProblem => {
    const found = candidates[at]?.find((one) => offsets.has(one));
    if (found === undefined && !isOfDocument(problem.path)) return problem;
    return { ...problem, place: placeAt(offsets.get(found ?? '') ?? 0, lines, file) };
  });
  return new ConfigError(places.toSorted(inTextOrder));
}

/** Whether a problem is of the document, and not, for example, of an environment variable. */
function isOfDocument(path: string): boolean {
  return path === 'document' || schemaAt([path.replace(/[.[].*/s, '')]) !== undefined;
}

function inTextOrder({ place: one }: ConfigProblem, { place: other }: ConfigProblem): number {
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  return one.line - other.line || one.column - other.column;
}

function linesOf(text: string): LineCounter {
  const lines = new LineCounter();
  lines.addNewLine(0);
  for (const { index } of text.matchAll(/\n/g)) lines.addNewLine(index + 1);
  return lines;
}

function placeAt(offset: number, lines: LineCounter, file: string | undefined): ProblemPlace {
  const { line, col } = lines.linePos(offset);
  return { file, line, column: col };
}

/*
 * Words for the faults of the YAML parser. Its own messages quote the text, which may hold a
 * secret, so they only tell one cause from another.
 */

const NO_COLON = String.raw`^(?:MISSING_CHAR Implicit map|MULTILINE_IMPLICIT).*\n.*\n`;
const NAME = String.raw`["']?[\w.$-]+["']?`;

/** Causes in the parser's code and message, the line before the fault, and the rest of the line. */
const CAUSES: readonly (readonly [cause: RegExp, message: string])[] = [
  [/\$\n\{/, `a placeholder stands without quotes inside { } or [ ]; write "\${NAME}"`],
  [/(?:^|:)[ \t]*[\u00a0\u2007\u202f\u3000]/m, 'this line has a no-break space; write a plain one'],
  [/(?:^|[:-])[ \t]*[\u2018-\u201f]/m, 'this line has typographic quotes; write " or \''],
  [/\r[^\n]/, 'lines end with CR alone; save the file with LF'],
  [
    /^(?:ALIAS|BAD_ALIAS|MULTIPLE_ANCHORS)/,
    'an anchor or an alias (& or *) begins here, which are not read; write the value out, or put it in quotes',
  ],
  [
    /^(?:BAD_COLLECTION_TYPE|BAD_PROP_ORDER|MULTIPLE_TAGS|TAG_|MISSING_CHAR Tags)/,
    'a tag (!name) stands here, which is not read; remove it',
  ],
  [
    /^(?:BAD_DIRECTIVE|MISSING_CHAR (?:Missing directives|Block))/,
    'a directive or its end stands here, which are not read; remove the line',
  ],
  [/^BAD_DQ_ESCAPE/, 'a backslash in double quotes escapes nothing; write \\\\ for one, or use single quotes'],
  [
    /must end with|^BAD_INDENT Flow/,
    'a { or [ is not closed; write the } or ] behind its last member, on its line or indented',
  ],
  [/closing ["']quote/, 'a text in quotes ends nowhere; close it on its line'],
  [
    /^(?:BAD_INDENT|MISSING_CHAR Sequence)/,
    'this line is indented differently from what stands beside it; begin the keys of one mapping, and the dashes of one list, in one column',
  ],
  [/^BAD_SCALAR_START/, 'no value may begin with this character; put the value in quotes'],
  [/^BLOCK_AS_IMPLICIT_KEY.*\n.*\n.*:(?:\s|$)/, 'a value has a colon and a space inside; put it in quotes'],
  [
    /^BLOCK_AS_IMPLICIT_KEY/,
    'the next line is indented deeper than this key, which has a value; begin that line in the column of the key',
  ],
  [
    /^BLOCK_IN_FLOW/,
    'a comma is missing before a key in { }, or a value has a colon and a space inside and needs quotes',
  ],
  [/^KEY_OVER/, 'a key has more than 1,024 characters'],
  [new RegExp(`${NO_COLON}${NAME}:[^\\s:]`), 'a space is missing behind the colon; write key: value'],
  [new RegExp(`${NO_COLON}${NAME}\\s*=`), '= stands in the place of a colon; write key: value'],
  [new RegExp(NO_COLON), 'a colon is missing; write key: value'],
  [/^MISSING_CHAR Comments/, 'a space is missing before the #, or quotes if it begins no comment'],
  [/^MISSING_CHAR Missing [,s]/, 'a comma, or a colon and a space, is missing before this'],
  [
    /^MULTIPLE_DOCS/,
    'a second document begins here, and only one is read; remove this line, and what does not belong to the first',
  ],
  [/^NON_STRING_KEY/, 'a key is no text; put it in quotes'],
  [/^RESOURCE_EXHAUSTION/, 'this is nested too deeply to be read'],
  [/^TAB_AS_INDENT/, 'a tab indents this line; indent with spaces'],
  [/YAML stream.*\n.*\n[}\]]/, 'this closing bracket is too many; remove it'],
  [/Not a YAML token|Block scalar header/, 'text stands on the line of a | or >; begin it on the next line'],
  [/ Unexpected (?:,|empty)/, 'nothing stands before this comma; remove it'],
  [/at node end\n/, 'text stands behind the end of a value; put the whole value in quotes'],
  [/^/, 'this does not belong here; a comma, a quote or a bracket is missing before it, or is too much'],
];

/** Faults that leave the rest of a text readable; behind any other fault, faults are guesses. */
const LOCAL = /^(?:BAD_COLLECTION_TYPE|BAD_DQ_ESCAPE|BAD_SCALAR_START|NON_STRING_KEY|TAG_RESOLVE_FAILED)$/;

/** The faults of the parser in words, up to the first that makes the rest unreadable. */
function yamlFaults(
  text: string,
  document: Document,
): readonly { readonly offset: number; readonly message: string }[] {
  const errors = [...document.errors, ...document.warnings];
  const last = errors.findIndex(({ code }) => !LOCAL.test(code));
  return errors.slice(0, last < 0 ? undefined : last + 1).map(({ code, message: said, pos: [offset] }) => {
    const before = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
    const [behind = ''] = text.slice(offset, offset + 1_000).split('\n');
    const found = `${code} ${said}\n${before}\n${behind}`;
    const message = CAUSES.find(([cause]) => cause.test(found))?.[1] ?? '';
    return { offset: /closing .quote|end with/.test(said) ? startOf(document, offset) : offset, message };
  });
}

/** The beginning of the innermost text or pair of brackets that reaches an offset. */
function startOf(document: Document, offset: number): number {
  let start = offset;
  visit(document, {
    Node: (_key, node) => {
      const [from, to] = node.range ?? [offset, offset];
      if (from < offset && to >= offset && (isScalar(node) || (isCollection(node) && node.flow))) start = from;
    },
  });
  return start;
}
