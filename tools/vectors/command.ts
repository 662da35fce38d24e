/** `acg vectors`: its usage and arguments; `ap2.ts` and `acp.ts` do the work. */

import { parseArgs } from 'node:util';
import { UsageError } from '../../src/cli/exit-code.ts';

const VECTORS_USAGE = `acg vectors ap2 FILE [--redis URL]: presents AP2 mandates to the verifier, case by case

  FILE   JSON with config (the merchant: its keys and issuers) and cases; each has a name, a header, now, the call, and
         expected: accepted, or the reason of the refusal
  --redis URL
         remembers what was used in that Redis, under names of its own, instead of in memory

acg vectors acp FILE: puts ACP documents through the validators of requests and answers, case by case

  FILE   JSON with spec and cases; each has an id, a schema (the name of its definition), a direction, a body, and
         valid: what the official schema says; tags name what is accepted of callers all the same

Prints a line for every case that comes out otherwise, and the counts; exit 1 when there was one.
`;

/**
 * `acg vectors ...`. Returns the exit code: 0 when every case came out as the file says, else 1.
 * @throws UsageError
 */
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
  if (protocol !== 'ap2' && protocol !== 'acp')
    throw new UsageError('say which vectors: vectors ap2 FILE or vectors acp FILE');
  if (file === undefined) throw new UsageError(`say which file: vectors ${protocol} FILE`);
  if (rest.length > 0) throw new UsageError(`unexpected argument ${rest[0]}`);
  if (protocol === 'acp' && values.redis !== undefined)
    throw new UsageError('--redis belongs to vectors ap2: documents of ACP are not remembered');
  return (await mismatchesOf(protocol, file, values.redis)) === 0 ? 0 : 1;
}

/** Imports only the modules of one protocol. */
async function mismatchesOf(protocol: 'ap2' | 'acp', file: string, redis: string | undefined): Promise<number> {
  if (protocol === 'acp') return (await import('./acp.ts')).corpusMismatches(file);
  return (await import('./ap2.ts')).vectors({ file, redis });
}
