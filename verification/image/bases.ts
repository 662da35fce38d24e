/** The two bases of the Dockerfile, made of Debian's libraries and the Node of the lockfile. */

import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { unpack } from '../../spec/support/apt.ts';

/** What Node links to, and a shell with its programs for the stage that builds. */
const LIBRARIES = { names: ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1', 'busybox-static'] } as const;
/** What npm and the build call of a shell's programs. */
const APPLETS = ['sh', 'env'] as const;
/** The authorities of the machine, and of the stage that builds. */
export const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** The folders that become the images. */
interface Bases {
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

/** Programs that a build and a run need, and the package of Debian that has each. */
const PROGRAMS = { buildah: 'buildah', podman: 'podman', runc: 'runc', conmon: 'conmon' } as const;
/** Where Debian has programs of root, which are not on the PATH of every user. */
const ROOTS_PATH = ['/usr/sbin', '/sbin'];

/** What was found of the tools, and one line for each that is missing. */
interface Tools {
  /** A root whose `usr` is laid over that of the machine; undefined when none is needed. */
  readonly overlay: string | undefined;
  readonly missing: readonly string[];
}

/** Looks for each program on PATH, and unpacks those that are missing into `folder`. */
export function bringTools(folder: string): Tools {
  const missing: string[] = [];
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    missing.push('containers need root on Linux: run it as root');
  const absent = Object.keys(PROGRAMS).filter((name) => !onPath(name));
  if (absent.length === 0) return { overlay: undefined, missing };
  const refusal = unpacked(
    folder,
    absent.map((name) => PROGRAMS[name as keyof typeof PROGRAMS]),
  );
  if (refusal !== undefined)
    return {
      overlay: undefined,
      missing: [
        ...missing,
        ...absent.map((name) => `no ${name} on PATH, and none from the Debian sources: ${refusal}`),
      ],
    };
  const unmounted = missing.length === 0 ? overlayRefused(folder) : undefined;
  if (unmounted !== undefined) missing.push(`the unpacked ${absent.join(', ')} cannot be laid over /usr: ${unmounted}`);
  return { overlay: folder, missing };
}

/** The folder of the npm that installs in the build stage, when it brings its own packages. */
export function npmFolder(): string | undefined {
  const link = folders().find((folder) => existsSync(join(folder, 'npm')));
  if (link === undefined) return undefined;
  const folder = join(dirname(realpathSync(join(link, 'npm'))), '..');
  return existsSync(join(folder, 'node_modules')) && existsSync(join(folder, 'bin/npm-cli.js')) ? folder : undefined;
}

/**
 * The command that runs `args` in namespaces of its own, with the tools over /usr: the machine
 * keeps its files, and every process ends with the command.
 */
export function namespaced(overlay: string | undefined, args: readonly string[]): readonly string[] {
  const mount = overlay === undefined ? ':' : 'mount -t overlay overlay -o "lowerdir=$0/usr:/usr" /usr';
  return [
    ...['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'],
    // Podman tells by these folders what ran before: nothing did.
    ...['sh', '-ec', `${mount}; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /dev/shm; exec "$@"`],
    ...[overlay ?? 'sh', ...args],
  ];
}

function onPath(name: string): boolean {
  return folders().some((folder) => existsSync(join(folder, name)));
}

function folders(): readonly string[] {
  return [...(process.env['PATH'] ?? '').split(delimiter), ...ROOTS_PATH];
}

/** Why they could not be unpacked. A folder beside becomes this one in one rename. */
function unpacked(folder: string, names: readonly string[]): string | undefined {
  if (names.every((name) => ['bin', 'sbin'].some((place) => existsSync(join(folder, 'usr', place, name)))))
    return undefined;
  const work = `${folder}-${process.pid}`;
  try {
    mkdirSync(work, { recursive: true });
    const root = unpack(work, { names });
    rmSync(folder, { recursive: true, force: true });
    renameSync(root, folder);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function overlayRefused(folder: string): string | undefined {
  const [program = '', ...args] = namespaced(folder, ['runc', '--version']);
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? undefined : (error?.message ?? stderr.trim().split('\n')[0] ?? `exit code ${status}`);
}

/** Copies a folder with its links and modes. */
function copyTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  execFileSync('cp', ['-a', ...readdirSync(from).map((name) => join(from, name)), to]);
}
