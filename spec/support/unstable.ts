/** Fetches packages of Debian unstable into a private apt root, from the mirror of the machine. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** `deb [options] uri suite components` of a mirror; the disc of an installation is none. */
const ONE_LINE_SOURCE = /^deb\s+(?:\[([^\]]*)\]\s+)?(https?:\S+)\s+\S+\s+(\S.*?)\s*$/;
/** An image of Debian has the first, an installed one the second. */
const DEBIAN_SOURCES = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];
const APT_TIMEOUT_MS = 600_000;
const APT_MAX_BYTES = 16 * 1024 * 1024;

/**
 * The first source of the machine's own, for the suite `sid`: the same mirror, the same key. Reads
 * and writes deb822.
 */
export function unstableSource(debianSources: string): string {
  const lines = debianSources.split('\n').filter((line) => !line.startsWith('#'));
  const oneLine = lines.map((line) => ONE_LINE_SOURCE.exec(line)).find((source) => source !== null);
  if (oneLine !== undefined) {
    const [, options = '', uri, components] = oneLine;
    const key = /(?:^|\s)signed-by=(\S+)/.exec(options)?.[1];
    return [
      'Types: deb',
      `URIs: ${uri}`,
      'Suites: sid',
      `Components: ${components}`,
      ...(key === undefined ? [] : [`Signed-By: ${key}`]),
      '',
    ].join('\n');
  }
  const stanza =
    lines
      .join('\n')
      .trim()
      .split(/\n\s*\n/)[0] ?? '';
  if (!/^Suites:/m.test(stanza)) throw new Error('no source of Debian packages');
  return `${stanza.replace(/^Suites:.*$/m, 'Suites: sid')}\n`;
}

function machineSources(): string {
  const file = DEBIAN_SOURCES.find((path) => existsSync(path));
  if (file === undefined) throw new Error(`neither ${DEBIAN_SOURCES.join(' nor ')} is there`);
  return readFileSync(file, 'utf8');
}

/**
 * Unpacks packages, and those of their dependencies that `needed` names, into `directory`/root.
 * What `directory` held is removed. Nothing of the machine's is written, and root is not needed.
 * @throws Error of one line
 */
export function unpackUnstable(directory: string, packages: readonly string[], needed?: RegExp): void {
  rmSync(directory, { recursive: true, force: true });
  for (const folder of ['lists/partial', 'cache/archives/partial', 'archives', 'root'])
    mkdirSync(join(directory, folder), { recursive: true });
  writeFileSync(join(directory, 'status'), '');
  writeFileSync(join(directory, 'sid.sources'), unstableSource(machineSources()));
  const apt = (where: string, ...args: readonly string[]): string =>
    step(where, 'apt-get', ['-qq', ...privateState(directory), ...args]);
  apt(directory, 'update');
  const wanted = needed === undefined ? packages : closure(apt(directory, '-s', 'install', ...packages), needed);
  const archives = join(directory, 'archives');
  apt(archives, 'download', ...wanted);
  for (const archive of readdirSync(archives).filter((name) => name.endsWith('.deb')))
    step(archives, 'dpkg', ['-x', archive, join(directory, 'root')]);
  for (const folder of ['lists', 'cache', 'archives'])
    rmSync(join(directory, folder), { recursive: true, force: true });
}

/** apt with lists, status and archives of its own. */
function privateState(directory: string): readonly string[] {
  return [
    `Dir::Etc::sourcelist=${join(directory, 'sid.sources')}`,
    'Dir::Etc::sourceparts=-',
    `Dir::State::lists=${join(directory, 'lists')}`,
    `Dir::State::status=${join(directory, 'status')}`,
    `Dir::Cache=${join(directory, 'cache')}`,
    'APT::Sandbox::User=root',
    'APT::Install-Recommends=false',
    'Acquire::Languages=none',
    'Debug::NoLocking=true',
  ].flatMap((option) => ['-o', option]);
}

/** What a simulated installation would install, as far as its name is `needed`. */
export function closure(simulated: string, needed: RegExp): readonly string[] {
  return simulated
    .split('\n')
    .flatMap((line) => /^Inst (\S+)/.exec(line)?.[1] ?? [])
    .filter((name) => needed.test(name));
}

function step(cwd: string, program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    timeout: APT_TIMEOUT_MS,
    maxBuffer: APT_MAX_BYTES,
  });
  if (status === 0) return stdout;
  const cause = error?.message ?? stderr.trim().split('\n')[0] ?? '';
  throw new Error(`${program} ${args.find((arg) => /^[a-z]+$/.test(arg)) ?? ''}: ${cause}`);
}
