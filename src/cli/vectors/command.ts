import { parseArgs } from 'node:util';
import { UsageError } from '../usage-error.ts';
import { vectors } from './vectors.ts';

export const VECTORS_USAGE = `acg vectors ap2 FILE [--redis URL]: presents AP2 mandates to the verifier, case by case

  FILE   JSON with config (the shop: its keys and issuers) and cases; each has a name, a header, now, the call, and
         expected: accepted, or the reason of the refusal
  --redis URL
         remembers what was used in that Redis, under names of its own, instead of in memory

Prints a line for every case that comes out otherwise, and the counts; exit 1 when there was one.
`;

/** `acg vectors ...`. Returns the exit code: 0 when every case came out as the file says, else 1. @throws UsageError */
export async function vectorsCommand(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { redis: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help === true) {
    process.stdout.write(VECTORS_USAGE);
    return 0;
  }
  const [protocol, file, ...rest] = positionals;
  if (protocol !== 'ap2') throw new UsageError('say which vectors, and they can only be of ap2: vectors ap2 FILE');
  if (file === undefined) throw new UsageError('say which file: vectors ap2 FILE');
  if (rest.length > 0) throw new UsageError(`unexpected argument ${rest[0]}`);
  return (await vectors({ file, redis: values.redis })) === 0 ? 0 : 1;
}
