import { parseArgs } from 'node:util';
import { UsageError } from '../usage-error.ts';
import { vectors } from './vectors.ts';

/** `acg vectors ...`. Returns the exit code: 0 when every case came out as the file says, else 1. @throws UsageError */
export async function vectorsCommand(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { redis: { type: 'string' } },
  });
  const [protocol, file, ...rest] = positionals;
  if (protocol !== 'ap2') throw new UsageError('say which vectors: vectors ap2 FILE');
  if (file === undefined) throw new UsageError('say which file: vectors ap2 FILE');
  if (rest.length > 0) throw new UsageError(`unexpected argument ${rest[0]}`);
  return (await vectors({ file, redis: values.redis })) === 0 ? 0 : 1;
}
