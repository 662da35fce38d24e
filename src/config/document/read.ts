/** Reads the configuration file, and the files that it names, as bounded text and strict YAML. */

import { readFileSync, statSync } from 'node:fs';
import { isScalar, LineCounter, parseDocument, visit, type YAMLError, type YAMLMap } from 'yaml';
import { ConfigError } from '../../problems/problem.ts';
import { readUniqueJson } from './json.ts';

/** Largest configuration file, bytes: 10,000 resources with schemas of a page each, in JSON. */
export const MAX_CONFIG_BYTES = 16_777_216;
/** Most that the YAML parser reads, bytes: a second and 60 MB. */
export const MAX_YAML_BYTES = 1_048_576;
/** Deepest nesting of the document, levels: above any JSON Schema that a person writes. */
export const MAX_CONFIG_DEPTH = 64;
/** The configuration file unless an argument or the environment names one. */
const DEFAULT_CONFIG_PATH = 'config.yaml';

const YAML_FAULTS: Partial<Record<YAMLError['code'], string>> = {
  NON_STRING_KEY: 'a key must be a text',
  MULTIPLE_DOCS: 'only one document is read',
  TAG_RESOLVE_FAILED: 'tags (!name) are not read',
  TAB_AS_INDENT: 'indentation must be spaces, not tabs',
  BAD_INDENT: 'the indentation does not fit',
  BAD_ALIAS: 'aliases (*name) are not read; write the value out',
};

/** The process environment, passed in: nothing here reads `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

export function configPath(argument: string | undefined, env: Environment): string {
  return argument || env['AGENT_COMMERCE_CONFIG'] || DEFAULT_CONFIG_PATH;
}

/** @throws ConfigError when the file cannot be read, is too large or is not UTF-8 */
export function readConfigFile(path: string): string {
  return readBoundedFile(path, MAX_CONFIG_BYTES, (message) => new ConfigError([{ path: 'document', message }]));
}

/** Reads a regular UTF-8 file of bounded size; `fault` makes the caller's error of a message. */
export function readBoundedFile(path: string, maxBytes: number, fault: (message: string) => Error): string {
  let bytes: Uint8Array;
  try {
    const stat = statSync(path);
    // A pipe or a device would block the start for ever.
    if (!stat.isFile()) throw fault(`${path} is not a regular file`);
    if (stat.size > maxBytes) throw fault(`${path} is larger than ${maxBytes} bytes`);
    bytes = readFileSync(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) throw error;
    throw fault(`${path} cannot be read (${error.code})`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw fault(`${path} is not UTF-8`);
  }
}

/**
 * One YAML 1.2 or JSON document as plain values. Refused: duplicate keys, keys that are no
 * strings, tags, several documents, and aliases, because a few lines of them expand to gigabytes.
 * The parser's own messages quote the text, which may hold a secret, so only its code and the
 * position are passed on.
 * @throws ConfigError
 */
export function parseConfigText(text: string): unknown {
  const plain = readUniqueJson(text);
  if (plain !== undefined) return plain;
  if (Buffer.byteLength(text) <= MAX_YAML_BYTES) return parseYaml(text);
  const message = `has more than ${MAX_YAML_BYTES} bytes and is not JSON, or names a member twice; so much must be well-formed JSON`;
  throw new ConfigError([{ path: 'document', message }]);
}

function parseYaml(text: string): unknown {
  const lines = new LineCounter();
  const faults: string[] = [];
  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  try {
    const document = parseDocument(text, {
      version: '1.2',
      schema: 'core',
      // Checked below: the parser takes half a minute for a megabyte of keys.
      uniqueKeys: false,
      stringKeys: true,
      prettyErrors: false,
      // `silent` would also silence the error of a second document.
      logLevel: 'error',
      lineCounter: lines,
    });
    for (const error of [...document.errors, ...document.warnings])
      faults.push(`${at(error.pos[0])}: ${YAML_FAULTS[error.code] ?? `is not well-formed YAML (${error.code})`}`);
    visit(document, {
      Map: (_key, node) => {
        for (const offset of repeatedKeys(node)) faults.push(`${at(offset)}: the same key stands twice in one mapping`);
      },
      Alias: (_key, node) => {
        faults.push(`${at(node.range?.[0] ?? 0)}: aliases (*name) are not read; write the value out`);
        return visit.BREAK;
      },
    });
    if (faults.length === 0) return document.toJS({ maxAliasCount: 0 });
  } catch {
    // The parser is recursive: a document nested thousands deep ends in a RangeError.
    faults.push('cannot be read as YAML');
  }
  throw new ConfigError([{ path: 'document', message: faults.slice(0, 10).join('; ') }]);
}

/** The certificates of a PEM text. */
export function pemCertificates(text: string): readonly string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

/** Offsets of keys that the mapping has already. */
function repeatedKeys({ items }: YAMLMap): readonly number[] {
  const seen = new Set<unknown>();
  return items.flatMap(({ key }) => {
    if (!isScalar(key)) return [];
    if (seen.has(key.value)) return [key.range?.[0] ?? 0];
    seen.add(key.value);
    return [];
  });
}
