/** The two bases of the Dockerfile, made of Debian's libraries and the Node of the lockfile. */

import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unpack } from '../../spec/support/apt.ts';
import { copyTree } from './tools.ts';

/** What Node links to, and a shell with its programs for the stage that builds. */
const LIBRARIES = { names: ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1', 'busybox-static'] } as const;
/** What npm and the build call of a shell's programs. */
const APPLETS = ['sh', 'env'] as const;
/** The authorities of the machine, and of the stage that builds. */
export const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** The folders that become the images. */
export interface Bases {
  /** Libraries and Node: no shell, no program besides. */
  readonly runtime: string;
  /** What lies over it in the stage that builds: a shell and npm. */
  readonly build: string;
}

/** Makes both below `work`. @throws Error of one line when Debian's libraries cannot be had */
export function makeBases(work: string, npm: string): Bases {
  const [debian, runtime, build] = ['debian', 'runtime', 'build'].map((name) => join(work, name)) as [
    string,
    string,
    string,
  ];
  for (const folder of [debian, runtime, build]) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  const root = unpack(debian, LIBRARIES);
  for (const folder of ['lib', 'lib64', 'usr/lib'])
    if (existsSync(join(root, folder))) copyTree(join(root, folder), join(runtime, folder));
  for (const folder of ['usr/local/bin', 'tmp', 'etc']) mkdirSync(join(runtime, folder), { recursive: true });
  copyFileSync(process.execPath, join(runtime, 'usr/local/bin/node'));

  for (const folder of ['bin', 'usr/bin', 'tmp', 'root', 'etc/ssl/certs'])
    mkdirSync(join(build, folder), { recursive: true });
  copyFileSync(join(root, 'bin/busybox'), join(build, 'bin/busybox'));
  for (const applet of APPLETS) symlinkSync('busybox', join(build, 'bin', applet));
  symlinkSync('../../bin/busybox', join(build, 'usr/bin/env'));
  cpSync(npm, join(build, 'usr/lib/node_modules/npm'), { recursive: true, verbatimSymlinks: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(build, 'usr/bin/npm'));
  writeFileSync(join(build, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  // A registry may be reached through a proxy with an authority that only this machine knows.
  if (existsSync(CERTIFICATES)) copyFileSync(CERTIFICATES, join(build, CERTIFICATES));
  return { runtime, build };
}
