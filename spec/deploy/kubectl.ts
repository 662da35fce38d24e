/**
 * A kubectl that renders kustomize: the one on PATH when it is new enough, else one unpacked into
 * `.cache/kubectl` from Debian unstable. Changes nothing on the machine and needs no root. As a
 * script it prepares the cache and prints the path.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** kustomize components with label targets, and native sidecars in the merge schema. */
const LEAST_MINOR = 32;
/** `deb [options] uri suite components` of a mirror; the disc of an installation is none. */
const ONE_LINE_SOURCE = /^deb\s+(?:\[([^\]]*)\]\s+)?(https?:\S+)\s+\S+\s+(\S.*?)\s*$/;
const CACHE = fileURLToPath(new URL('../../.cache/kubectl', import.meta.url));
const UNPACKED = join(CACHE, 'root/usr/bin/kubectl');
/** An image of Debian has the first, an installed one the second. */
const DEBIAN_SOURCES = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];
const APT_TIMEOUT_MS = 180_000;
const RENDER_TIMEOUT_MS = 30_000;
const RENDER_MAX_BYTES = 8 * 1024 * 1024;

/** Minor version of a kubectl 1.x, or undefined when the program is absent or another one. */
function minorOf(program: string): number | undefined {
  const { status, stdout } = spawnSync(program, ['version', '--client', '-o', 'json'], {
    encoding: 'utf8',
    timeout: RENDER_TIMEOUT_MS,
  });
  if (status !== 0) return undefined;
  const minor = /"gitVersion":\s*"v1\.(\d+)\./.exec(stdout)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

function newEnough(program: string): boolean {
  return (minorOf(program) ?? 0) >= LEAST_MINOR;
}

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

function step(program: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { cwd: CACHE, encoding: 'utf8', timeout: APT_TIMEOUT_MS });
  if (status === 0) return;
  const cause = error?.message ?? stderr.trim().split('\n')[0] ?? '';
  throw new Error(`${program} ${args.find((arg) => !arg.startsWith('-') && !arg.includes('::')) ?? ''}: ${cause}`);
}

/** A private apt root: its own lists, status and archives, nothing of the machine's is written. */
function unpackFromUnstable(): void {
  rmSync(CACHE, { recursive: true, force: true });
  for (const directory of ['lists/partial', 'cache/archives/partial', 'root']) {
    mkdirSync(join(CACHE, directory), { recursive: true });
  }
  writeFileSync(join(CACHE, 'status'), '');
  writeFileSync(join(CACHE, 'sid.sources'), unstableSource(machineSources()));
  const options = [
    `Dir::Etc::sourcelist=${join(CACHE, 'sid.sources')}`,
    'Dir::Etc::sourceparts=-',
    `Dir::State::lists=${join(CACHE, 'lists')}`,
    `Dir::State::status=${join(CACHE, 'status')}`,
    `Dir::Cache=${join(CACHE, 'cache')}`,
    'APT::Sandbox::User=root',
    'Acquire::Languages=none',
  ].flatMap((option) => ['-o', option]);
  step('apt-get', ['-qq', ...options, 'update']);
  step('apt-get', ['-qq', ...options, 'download', 'kubectl']);
  const archive = readdirSync(CACHE).find((name) => name.endsWith('.deb'));
  if (archive === undefined) throw new Error('apt-get downloaded no kubectl');
  step('dpkg', ['-x', archive, 'root']);
  for (const directory of ['lists', 'cache', archive]) rmSync(join(CACHE, directory), { recursive: true, force: true });
}

/** Path of a kubectl that is new enough. @throws Error when none is there or can be fetched */
export function kubectl(): string {
  if (newEnough('kubectl')) return 'kubectl';
  if (existsSync(UNPACKED) && newEnough(UNPACKED)) return UNPACKED;
  const wanted = `kubectl 1.${LEAST_MINOR} or newer is not on PATH and could not be had from Debian unstable`;
  try {
    unpackFromUnstable();
  } catch (cause) {
    throw new Error(`${wanted}: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  if (!newEnough(UNPACKED)) throw new Error(`${wanted}: the one found there does not run`);
  return UNPACKED;
}

/** The YAML stream of `kubectl kustomize directory`, offline. @throws kustomize's own message */
export function kustomize(directory: string): string {
  const { status, stdout, stderr } = spawnSync(kubectl(), ['kustomize', directory], {
    encoding: 'utf8',
    timeout: RENDER_TIMEOUT_MS,
    maxBuffer: RENDER_MAX_BYTES,
  });
  if (status !== 0) throw new Error(stderr.trim());
  return stdout;
}

if (import.meta.main) {
  try {
    console.log(kubectl());
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
