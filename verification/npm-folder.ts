/** Packages that no test needs: programs install them once, below `.cache`, as locked. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Says which lockfile the folder was installed from. */
const MARK = '.installed';
const INSTALL_TIMEOUT_MS = 300_000;

/** Installs what the lockfile of `sources` names into `folder`, and copies the sources there. */
export async function installLocked(sources: string, folder: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of ['package.json', 'package-lock.json']) hash.update(await readFile(join(sources, file)));
  const version = hash.digest('hex');
  const mark = join(folder, MARK);
  const present = existsSync(mark) ? await readFile(mark, 'utf8') : '';
  if (present !== version) {
    const work = `${folder}-${process.pid}`;
    await rm(work, { recursive: true, force: true });
    await cp(sources, work, { recursive: true });
    await promisify(execFile)('npm', ['ci', '--loglevel=error'], { cwd: work, timeout: INSTALL_TIMEOUT_MS });
    await writeFile(join(work, MARK), version);
    await rm(folder, { recursive: true, force: true });
    await rename(work, folder);
  }
  // The packages are kept, the programs are those of this checkout.
  await cp(sources, folder, { recursive: true });
  return folder;
}
