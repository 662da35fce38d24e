import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import { referenceTo, SCHEMA_FILES } from '../../../../../src/adapters/acp/validation/schemas.ts';
import { DOCUMENT_NAMES, type DocumentName } from '../../../../../src/adapters/acp/validation/types.ts';
import type { Json, JsonObject } from '../../../../../src/json/types.ts';
import type { Edit } from './enumerate.ts';

const addFormats = formatsPlugin.default ?? formatsPlugin;

/** Documents and their right verdicts. */
export type Labelled = Readonly<Record<DocumentName, readonly (readonly [document: Json, valid: boolean])[]>>;

/** What notices an edit first: the cheapest and most lasting proof comes first. */
export type Noticed = 'vectors' | 'corpus' | 'random' | 'nothing' | 'uncompilable';

/**
 * The documents that reach a definition, by file and name: an edit of it changes no other verdict.
 */
export function rootsByDefinition(): ReadonlyMap<string, readonly DocumentName[]> {
  const roots = new Map<string, DocumentName[]>();
  for (const name of DOCUMENT_NAMES) {
    const seen = new Set<string>();
    const collect = (reference: string): void => {
      if (seen.has(reference)) return;
      seen.add(reference);
      roots.set(reference, [...(roots.get(reference) ?? []), name]);
      const [file = '', definition = ''] = reference.split('#/$defs/');
      const definitions = SCHEMA_FILES[file]?.['$defs'] as { readonly [name: string]: JsonObject };
      for (const [, target = ''] of JSON.stringify(definitions[definition]).matchAll(/"\$ref":"([^"]+)"/g))
        collect(target.startsWith('#') ? `${file}${target}` : target);
    };
    collect(referenceTo(name));
  }
  return roots;
}

/**
 * Whether any verdict of these documents is another one with this edit. Sets of documents are tried
 * in their order, each for every root.
 */
export function judge(
  edit: Edit,
  roots: readonly DocumentName[],
  sets: readonly (readonly [Noticed, Labelled])[],
): Noticed {
  const compiled = new Map<DocumentName, ValidateFunction>();
  const ajv = edited(edit);
  const validatorOf = (name: DocumentName): ValidateFunction => {
    const validate = compiled.get(name) ?? ajv.getSchema(referenceTo(name));
    if (validate === undefined) throw new Error(`there is no schema of ${name}`);
    compiled.set(name, validate);
    return validate;
  };
  try {
    for (const [noticed, labelled] of sets)
      for (const name of roots)
        if (labelled[name].some(([document, valid]) => validatorOf(name)(document) !== valid)) return noticed;
    return 'nothing';
  } catch {
    return 'uncompilable';
  }
}

/** Not strict: an edit may leave what the strict mode calls an oversight. */
function edited({ file, schema }: Edit): Ajv2020 {
  const ajv = new Ajv2020({
    ...{ strict: false, discriminator: true, inlineRefs: false, messages: false, validateSchema: false },
    ...{ logger: false, code: { optimize: false } },
  });
  addFormats(ajv);
  for (const [name, original] of Object.entries(SCHEMA_FILES)) ajv.addSchema(name === file ? schema : original, name);
  return ajv;
}
