import { RELAXED } from '../../../src/adapters/acp/validation/engine.ts';
import { REQUEST_NAMES } from '../../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../../src/adapters/acp/validation/validator.ts';
import { type CorpusCase, readCorpus } from './corpus.ts';

const LOOSENED: ReadonlySet<string> = new Set(RELAXED.wire);
const REQUESTS: ReadonlySet<string> = new Set(REQUEST_NAMES);

/**
 * `acg vectors acp FILE`: puts every document of a file through the validators that serve. The
 * strict build must say what the official schema says; so must the wire build, except that it takes
 * the requests that a tag names as loosened. One line for every verdict that is another, and one
 * with the counts. Returns how many there were.
 * @throws Error for a file that is not understood
 */
export function corpusMismatches(file: string): number {
  const cases = readCorpus(file);
  const mismatches = cases.flatMap(mismatchesOf);
  for (const line of mismatches) process.stdout.write(`${line}\n`);
  process.stdout.write(`${cases.length} cases, ${mismatches.length} mismatches\n`);
  return mismatches.length;
}

function mismatchesOf({ id, schema, valid, tags, body }: CorpusCase): readonly string[] {
  const loosened = REQUESTS.has(schema) && tags.some((tag) => LOOSENED.has(tag));
  const expected = { strict: valid, wire: valid || loosened };
  return (['strict', 'wire'] as const).flatMap((build) => {
    const fault = validatorOf(build, schema)(body);
    if ((fault === undefined) === expected[build]) return [];
    const found = fault === undefined ? 'valid' : `invalid (${fault.param} ${fault.message})`;
    return [`${id} ${schema}: ${build} expected ${expected[build] ? 'valid' : 'invalid'}, was ${found}`];
  });
}
