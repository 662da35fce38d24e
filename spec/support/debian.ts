/** Programs that specs need and the packages do not bring, fetched from Debian. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Packages, unpack } from './apt.ts';
import { locked } from './locked.ts';

const CACHE = fileURLToPath(new URL('../../.cache', import.meta.url));
const RUN_TIMEOUT_MS = 30_000;

/** A program that runs, with what it needs in its environment. */
export interface Program {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A program that the tests need, and where Debian has it. */
export interface DebianProgram {
  /** As it is called on PATH. */
  readonly name: string;
  /** The environment variable that names another one. */
  readonly variable: string;
  /** Folder of `.cache` where it is unpacked. */
  readonly folder: string;
  readonly packages: Packages;
  /** The program below the unpacked root. */
  readonly path: string;
  /**
   * Finishes the unpacked root, once, before the program first runs; the root is moved after that.
   */
  readonly finish?: (root: string) => void;
  /** The argument with which it shows that it runs; default `--version`. */
  readonly shows?: string;
  /** What the unpacked program needs in its environment beside its libraries. */
  readonly env?: (home: string) => Readonly<Record<string, string>>;
}

/**
 * Finds a program: the one that its variable names, else the one on PATH, else one unpacked into
 * `.cache` from the machine's own Debian sources. Changes nothing on the machine and needs no root.
 * @throws Error of one line when none can be had
 */
export async function debianProgram(wanted: DebianProgram): Promise<Program> {
  const { name, variable, shows } = wanted;
  const chosen = process.env[variable];
  if (chosen !== undefined && chosen !== '') {
    if (runs({ program: chosen, env: {} }, shows)) return { program: chosen, env: {} };
    throw new Error(`${variable} does not name a ${name} that runs`);
  }
  const onPath = { program: name, env: {} };
  if (runs(onPath, shows)) return onPath;
  if (runs(unpacked(wanted), shows)) return unpacked(wanted);
  mkdirSync(CACHE, { recursive: true });
  await locked(join(CACHE, `${wanted.folder}.lock`), () => {
    // Another process may have installed it while this one waited.
    if (!runs(unpacked(wanted), shows)) install(wanted);
  });
  const installed = unpacked(wanted);
  if (runs(installed, shows)) return installed;
  throw new Error(`no ${name}: the unpacked one does not run; set ${variable} or install ${name}`);
}

function runs({ program, env }: Program, shows = '--version'): boolean {
  const { status } = spawnSync(program, [shows], {
    env: { ...process.env, ...env },
    stdio: 'ignore',
    timeout: RUN_TIMEOUT_MS,
  });
  return status === 0;
}

function unpacked({ folder, path, env }: DebianProgram): Program {
  const home = join(CACHE, folder);
  const libraries = ['usr/lib', 'lib'].flatMap((directory) => librariesBelow(join(home, directory)));
  return { program: join(home, path), env: { ...env?.(home), LD_LIBRARY_PATH: libraries.join(':') } };
}

/**
 * Libraries lie in a folder of the architecture; those that only one other library uses, one
 * deeper.
 */
function librariesBelow(directory: string, depth = 2): readonly string[] {
  if (depth === 0 || !existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(directory, entry.name))
    .flatMap((below) => [below, ...librariesBelow(below, depth - 1)]);
}

/** Everything happens in a directory of its own, which becomes the installation in one rename. */
function install({ name, folder, packages, finish }: DebianProgram): void {
  const work = join(CACHE, `${folder}-${process.pid}`);
  const home = join(CACHE, folder);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work);
  try {
    const root = unpack(work, packages);
    finish?.(root);
    rmSync(home, { recursive: true, force: true });
    renameSync(root, home);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`no ${name} on PATH, and none could be had from the Debian sources: ${why}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** What a script does that prepares the cache: silent, or one line and exit code 1. */
export async function prepare(wanted: () => Promise<unknown>): Promise<void> {
  try {
    await wanted();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
