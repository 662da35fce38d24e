import { DOCUMENT_NAMES, type DocumentName } from '../../../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json } from '../../../../src/json/types.ts';
import { chanceOf } from '../../../../verification/chaos/sim/chance.ts';
import { type Official, readOfficial } from './published.ts';
import { createGenerator, vocabularyOf } from './random/generate.ts';
import { mutated, shrunk } from './random/mutate.ts';

/** A document on which the two schemas do not agree, reduced as far as possible. */
export interface Disagreement {
  readonly name: DocumentName;
  readonly document: Json;
  /** The verdict of the official schema. */
  readonly official: boolean;
}

export interface Differential {
  readonly documents: number;
  /** How many of them are valid: a run that sees only one verdict proves little. */
  readonly valid: number;
  readonly disagreements: readonly Disagreement[];
}

/** As made, and with one to three changes. */
const MOST_CHANGES = 3;
/** A schema that is wrong disagrees on thousands: a few show it. */
const ENOUGH = 5;

/** Documents of this seed, in the order in which they are tried. */
export function* randomDocuments(
  official: Official,
  seed: number,
  count: number,
): Generator<readonly [DocumentName, Json]> {
  const chance = chanceOf(seed);
  const generate = createGenerator(official.definitions, chance);
  const vocabulary = vocabularyOf(official.definitions);
  for (let made = 0; made < count; made += 1) {
    const name = chance.pick(DOCUMENT_NAMES);
    let document = generate(name);
    for (let changes = chance.below(MOST_CHANGES + 1); changes > 0; changes -= 1)
      document = mutated(document, chance, vocabulary);
    yield [name, document];
  }
}

/**
 * Compares our strict validators with the official schema, on documents made from that schema and
 * then changed.
 */
export function differential(official: Official, seed: number, count: number): Differential {
  const disagreements: Disagreement[] = [];
  let [documents, valid] = [0, 0];
  for (const [name, document] of randomDocuments(official, seed, count)) {
    documents += 1;
    const disagrees = (one: Json) => official.accepts(name, one) !== (validatorOf('strict', name)(one) === undefined);
    if (official.accepts(name, document)) valid += 1;
    if (!disagrees(document)) continue;
    const smallest = shrunk(document, disagrees);
    disagreements.push({ name, document: smallest, official: official.accepts(name, smallest) });
    if (disagreements.length === ENOUGH) break;
  }
  return { documents, valid, disagreements };
}

/**
 * `node spec/adapters/acp/validation/differential.ts [COUNT] [SEED]`; exit 1 when a document gets
 * another verdict.
 */
if (import.meta.main) {
  const [count = 50_000, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number);
  const { documents, valid, disagreements } = differential(readOfficial(), seed, count);
  for (const { name, document, official } of disagreements)
    process.stdout.write(`${name}: officially ${official ? 'valid' : 'invalid'}: ${JSON.stringify(document)}\n`);
  process.stdout.write(`seed ${seed}: ${documents} documents, ${valid} valid, ${disagreements.length} differences\n`);
  process.exitCode = disagreements.length === 0 ? 0 : 1;
}
