/** Reads and writes streams of Kubernetes objects in YAML or JSON, as kubectl reads them. */

import { Document, isScalar, parseAllDocuments, type ScalarTag, type SchemaOptions, visit } from 'yaml';

/** One object of a stream, and how it was written. */
export interface ManifestDocument {
  readonly object: unknown;
  /** The text of this document with another object in it. */
  readonly write: (object: unknown) => string;
}

/** The text is no YAML and no JSON; the message says where. */
export class ManifestError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ManifestError';
  }
}

/** Integers of YAML 1.1, which kubectl reads as numbers: a `defaultMode: 0444` is 292. */
const INTEGERS = [
  { written: /^[-+]?0[0-7_]+$/, base: 8 },
  { written: /^[-+]?0b[01_]+$/, base: 2 },
  { written: /^[-+]?[1-9][0-9]*_[0-9_]*$/, base: 10 },
];
const INTEGER_TAGS: readonly ScalarTag[] = INTEGERS.map(({ written, base }) => ({
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: written,
  resolve: (text) => Number.parseInt(text.replaceAll('_', '').replace('0b', ''), base),
}));
const READING: SchemaOptions = { customTags: (tags) => [...INTEGER_TAGS, ...tags], merge: true };

/**
 * Texts that some reader of YAML takes for a number, a date, a truth value or nothing when they
 * stand plain, or whose leading space it takes for indentation when they stand in a block.
 */
const AMBIGUOUS = /^(?:[-+.\d~<=\s].*|y|n|yes|no|on|off|true|false|null)$/is;

/** @throws ManifestError */
export function readManifests(text: string): readonly ManifestDocument[] {
  const json = parseJson(text);
  if (json !== undefined) return [{ object: json.value, write: (object) => `${JSON.stringify(object, null, 2)}\n` }];
  const documents = parseAllDocuments(text, READING);
  return [...documents].flatMap((document, index) => {
    const [error] = document.errors;
    if (error !== undefined) throw new ManifestError(`document ${index + 1}: ${error.message.split('\n')[0]}`);
    const original = objectOf(document, index);
    if (original === null) return [];
    return [
      {
        object: original,
        // An unchanged document keeps its comments and its style.
        write: (object) =>
          object === original ? document.toString({ lineWidth: 0 }).replace(/^---\n/, '') : writeYaml(object),
      },
    ];
  });
}

function objectOf(document: { toJS(): unknown }, index: number): unknown {
  try {
    return document.toJS();
  } catch (thrown) {
    throw new ManifestError(`document ${index + 1}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}

/** Undefined: the text is not JSON. */
function parseJson(text: string): { readonly value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** The object in YAML that every reader understands alike. */
export function writeYaml(object: unknown): string {
  const document = new Document(object, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_key, node) {
      if (isScalar(node) && typeof node.value === 'string' && AMBIGUOUS.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 });
}
