/** Directories of fixtures, which hold keys and go away with their fixture or its process. */

import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const open = new Set<string>();
process.once('exit', () => {
  for (const directory of open) rmSync(directory, { recursive: true, force: true });
});

/** Makes a directory that `ends` removes. */
export async function temporaryDirectory(ends: AsyncDisposableStack, prefix: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), prefix));
  open.add(directory);
  ends.defer(async () => {
    await rm(directory, { recursive: true, force: true });
    open.delete(directory);
  });
  return directory;
}
