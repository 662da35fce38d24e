import { existsSync } from 'node:fs';
import { SCHEMA_FILES } from '../../../../src/adapters/acp/validation/schemas.ts';
import { DOCUMENT_NAMES, type DocumentName } from '../../../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json } from '../../../../src/json/types.ts';
import { readCorpus } from '../../../../tools/vectors/acp.ts';
import { randomDocuments } from './differential.ts';
import { type Edit, editsOf } from './edits/enumerate.ts';
import { HARMLESS } from './edits/harmless.ts';
import { judge, type Labelled, type Noticed, rootsByDefinition } from './edits/judge.ts';
import { CORPUS_FILE, OFFICIAL_SCHEMA_FILE, readOfficial } from './published.ts';
import { VECTORS } from './vectors/documents.ts';

const RANDOM_DOCUMENTS = 8_000;
const SEED = 417;

type Labels = readonly (readonly [name: DocumentName, document: Json, valid: boolean])[];

function byName(labels: Labels): Labelled {
  const of = (name: DocumentName) =>
    labels.flatMap(([one, document, valid]) => (one === name ? [[document, valid] as const] : []));
  return Object.fromEntries(DOCUMENT_NAMES.map((name) => [name, of(name)])) as unknown as Labelled;
}

/** The vectors of this repository. */
export function ownVectors(): Labelled {
  return byName(
    DOCUMENT_NAMES.flatMap((name) => {
      const { least, full, valid, invalid } = VECTORS[name];
      return [
        ...[least, full, ...valid].map((document) => [name, document, true] as const),
        ...invalid.map((document) => [name, document, false] as const),
      ];
    }),
  );
}

function corpus(): Labelled {
  if (!existsSync(CORPUS_FILE)) return byName([]);
  return byName(readCorpus(CORPUS_FILE).map(({ schema, body, valid }) => [schema, body, valid]));
}

function random(): Labelled {
  if (!existsSync(OFFICIAL_SCHEMA_FILE)) return byName([]);
  const documents = [...randomDocuments(readOfficial(), SEED, RANDOM_DOCUMENTS)];
  return byName(
    documents.map(([name, document]) => [name, document, validatorOf('strict', name)(document) === undefined]),
  );
}

/** Every edit of the published schemas whose title begins so. */
export function allEdits(beginning = ''): readonly Edit[] {
  return Object.entries(SCHEMA_FILES)
    .flatMap(([file, schema]) => editsOf(file, schema))
    .filter(({ title }) => title.startsWith(beginning));
}

/**
 * `node spec/adapters/acp/validation/edits.ts [BEGINNING OF TITLES]`; exit 1 when an edit that is
 * not known to be harmless goes unnoticed.
 */
if (import.meta.main) {
  const sets = [
    ['vectors', ownVectors()],
    ['corpus', corpus()],
    ['random', random()],
  ] as const;
  const roots = rootsByDefinition();
  const counts: Record<Noticed | 'harmless', number> = {
    vectors: 0,
    corpus: 0,
    random: 0,
    nothing: 0,
    uncompilable: 0,
    harmless: 0,
  };
  const edits = allEdits(process.argv[2]);
  for (const edit of edits) {
    const noticed = judge(edit, roots.get(`${edit.file}#/$defs/${edit.definition}`) ?? [], sets);
    const reason = noticed === 'nothing' ? HARMLESS.find(({ title }) => title.test(edit.title))?.reason : undefined;
    counts[reason === undefined ? noticed : 'harmless'] += 1;
    if (noticed !== 'vectors')
      process.stdout.write(`${reason === undefined ? noticed : `harmless (${reason})`}: ${edit.title}\n`);
  }
  const { vectors, corpus: inCorpus, random: atRandom, nothing, uncompilable, harmless } = counts;
  process.stdout.write(
    `${edits.length} edits: noticed by vectors ${vectors}, by the corpus only ${inCorpus}, at random only ${atRandom}, ` +
      `by nothing ${nothing}; harmless ${harmless}, do not compile ${uncompilable}\n`,
  );
  process.exitCode = nothing === 0 ? 0 : 1;
}
