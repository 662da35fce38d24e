/** A directory of files as the kubelet mounts a ConfigMap or a Secret. */

import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Files that are replaced together: links through `..data`, which is replaced by rename. */
export interface MountedVolume {
  readonly path: string;
  publish(files: Readonly<Record<string, string>>): Promise<void>;
}

/** @param path a directory that does not exist yet */
export async function mountVolume(path: string, files: Readonly<Record<string, string>>): Promise<MountedVolume> {
  await mkdir(path, { recursive: true });
  let version = 0;
  let before: string | undefined;
  const publish = async (next: Readonly<Record<string, string>>): Promise<void> => {
    version += 1;
    const name = `..version_${version}`;
    await mkdir(join(path, name));
    for (const [file, text] of Object.entries(next)) await writeFile(join(path, name, file), text, { mode: 0o600 });
    await symlink(name, join(path, '..data_tmp'));
    await rename(join(path, '..data_tmp'), join(path, '..data'));
    if (before !== undefined) await rm(join(path, before), { recursive: true });
    before = name;
  };
  await publish(files);
  for (const file of Object.keys(files)) await symlink(join('..data', file), join(path, file));
  return { path, publish };
}
