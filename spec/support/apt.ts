/** Finds and unpacks Debian packages from the sources of the machine. */

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Packages of the machine's own Debian sources. */
export interface Packages {
  readonly names: readonly string[];
  /** Libraries that are named as dependencies and not needed here, with all that only they need. */
  readonly without?: RegExp;
}

const APT_TIMEOUT_MS = 180_000;
/** zlib1g is the one library of Debian whose name does not begin like the others. */
const LIBRARY = /^(?:lib|zlib)/;

/**
 * Unpacks packages, and the libraries that they need and the machine lacks, into `work`/root. Needs
 * no root and changes nothing outside `work`. @throws Error of one line
 */
export function unpack(work: string, packages: Packages): string {
  for (const directory of ['lists/partial', 'cache/archives/partial', 'root'])
    mkdirSync(join(work, directory), { recursive: true });
  try {
    download(aptOf(work, 'the lists of the machine'), work, packages);
  } catch {
    // No lists, or lists that name releases which the mirror has replaced since: fetched afresh,
    // into a directory of our own.
    const apt = aptOf(work, 'lists of its own');
    apt('apt-get', 'update');
    download(apt, work, packages);
  }
  const root = join(work, 'root');
  for (const archive of readdirSync(work).filter((file) => file.endsWith('.deb')))
    step(work, 'dpkg', ['-x', archive, root]);
  return root;
}

/**
 * Runs a program of apt; its state is private, so that neither root nor a lock of the machine's is
 * needed.
 */
type Apt = (program: 'apt-get' | 'apt-cache', ...args: readonly string[]) => string;

function aptOf(work: string, lists: 'the lists of the machine' | 'lists of its own'): Apt {
  const settings = [`Dir::Cache=${join(work, 'cache')}`, 'APT::Sandbox::User=root', 'Acquire::Languages=none'];
  if (lists === 'lists of its own') settings.push(`Dir::State::lists=${join(work, 'lists')}`);
  const options = settings.flatMap((setting) => ['-o', setting]);
  return (program, ...args) => step(work, program, [...options, '-qq', ...args]);
}

function download(apt: Apt, work: string, packages: Packages): void {
  apt('apt-get', 'download', ...closure(packages, dependencies(apt, packages.names), lacking(work)));
}

/**
 * The packages with the libraries they lead to, through libraries alone: no service, no data of a
 * desktop.
 */
export function closure(
  { names, without }: Packages,
  dependencies: ReadonlyMap<string, readonly string[]>,
  lacks: (library: string) => boolean,
): readonly string[] {
  const found = new Set(names);
  // A set that grows is walked to its end.
  for (const name of found)
    for (const needed of dependencies.get(name) ?? [])
      if (LIBRARY.test(needed) && without?.test(needed) !== true && lacks(needed)) found.add(needed);
  return [...found];
}

function dependencies(apt: Apt, names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const kinds = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'];
  return dependencyTable(apt('apt-cache', 'depends', '--recurse', ...kinds.map((kind) => `--no-${kind}`), ...names));
}

/**
 * What `apt-cache depends` prints: a package at the margin, what it depends on indented below it;
 * `<name>` is no package.
 */
export function dependencyTable(printed: string): ReadonlyMap<string, readonly string[]> {
  const table = new Map<string, string[]>();
  let needed: string[] = [];
  for (const line of printed.split('\n')) {
    if (/^\S/.test(line)) {
      needed = [];
      table.set(line.trim(), needed);
    }
    const name = /^\s+\|?(?:Pre)?Depends: ([^\s<>]+)$/.exec(line)?.[1];
    if (name !== undefined) needed.push(name);
  }
  return table;
}

function lacking(work: string): (library: string) => boolean {
  const lines = step(work, 'dpkg', ['--get-selections']).split('\n');
  const installed = new Set(lines.flatMap((line) => /^([^\s:]+)(?::\S+)?\s+(?:install|hold)$/.exec(line)?.[1] ?? []));
  return (library) => !installed.has(library);
}

function step(cwd: string, program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    timeout: APT_TIMEOUT_MS,
    maxBuffer: 16 * 1024 * 1024,
  });
  if (status === 0) return stdout;
  const action = args.find((arg) => /^[a-z-]+$/.test(arg) && !arg.startsWith('-')) ?? '';
  throw new Error(`${program} ${action}: ${error?.message ?? stderr.trim().split('\n')[0] ?? ''}`);
}
