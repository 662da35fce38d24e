/**
 * A redis-server for the tests: $TEST_REDIS_SERVER, else the one on PATH, else one unpacked into `.cache/redis` from the
 * machine's own Debian sources. Changes nothing on the machine and needs no root. As a script it prepares the cache.
 */
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const CACHE = fileURLToPath(new URL('../../.cache', import.meta.url));
const INSTALLED = join(CACHE, 'redis');
const LOCK = join(CACHE, 'redis.lock');
const APT_TIMEOUT_MS = 180_000;
const RUN_TIMEOUT_MS = 10_000;
const LOCK_POLL_MS = 200;
const LOCK_TIMEOUT_MS = 300_000;

/** A program that runs, with what it needs in its environment. */
export interface RedisServer {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Finds or installs one. @throws Error of one line when there is none and none can be had. */
export async function redisServer(): Promise<RedisServer> {
  const chosen = process.env['TEST_REDIS_SERVER'];
  if (chosen !== undefined && chosen !== '') {
    if (runs({ program: chosen, env: {} })) return { program: chosen, env: {} };
    throw new Error('TEST_REDIS_SERVER does not name a redis-server that runs');
  }
  const onPath = { program: 'redis-server', env: {} };
  if (runs(onPath)) return onPath;
  if (runs(unpacked(INSTALLED))) return unpacked(INSTALLED);
  await locked(() => {
    // Somebody else may have installed it while this process waited.
    if (!runs(unpacked(INSTALLED))) install();
  });
  const installed = unpacked(INSTALLED);
  if (runs(installed)) return installed;
  throw new Error('no redis-server: the unpacked one does not run; set TEST_REDIS_SERVER or install redis-server');
}

function runs({ program, env }: RedisServer): boolean {
  const { status } = spawnSync(program, ['--version'], {
    env: { ...process.env, ...env },
    stdio: 'ignore',
    timeout: RUN_TIMEOUT_MS,
  });
  return status === 0;
}

function unpacked(root: string): RedisServer {
  const libraries = join(root, 'usr/lib');
  const directories = existsSync(libraries)
    ? readdirSync(libraries, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => join(libraries, entry.name))
    : [];
  return { program: join(root, 'usr/bin/redis-server'), env: { LD_LIBRARY_PATH: directories.join(':') } };
}

/** Test files run in several processes: one installs, the others wait for it. */
async function locked(work: () => void): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  for (const deadline = Date.now() + LOCK_TIMEOUT_MS; !lock(); await delay(LOCK_POLL_MS)) {
    if (Date.now() > deadline) throw new Error('no redis-server: another process has been installing it for too long');
  }
  try {
    work();
  } finally {
    rmSync(LOCK, { force: true });
  }
}

function lock(): boolean {
  try {
    const file = openSync(LOCK, 'wx');
    writeSync(file, String(process.pid));
    closeSync(file);
    return true;
  } catch {
    if (!ownerAlive()) rmSync(LOCK, { force: true });
    return false;
  }
}

function ownerAlive(): boolean {
  try {
    const pid = Number(readFileSync(LOCK, 'utf8'));
    // Not written yet: its owner is between two calls.
    if (pid === 0) return true;
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'EPERM';
  }
}

/** Everything happens in a directory of its own, which becomes the installation in one rename. */
function install(): void {
  const work = join(CACHE, `redis-${process.pid}`);
  rmSync(work, { recursive: true, force: true });
  for (const directory of ['lists/partial', 'cache/archives/partial', 'root'])
    mkdirSync(join(work, directory), { recursive: true });
  try {
    const apt = aptOf(work);
    download(apt, work, ['redis-server', 'redis-tools']);
    rmSync(INSTALLED, { recursive: true, force: true });
    renameSync(join(work, 'root'), INSTALLED);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`no redis-server on PATH, and none could be had from the Debian sources: ${why}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Runs a program of apt; its state is private, so that neither root nor a lock of the machine's is needed. */
type Apt = (program: 'apt-get' | 'apt-cache', ...args: readonly string[]) => string;

function aptOf(work: string): Apt {
  const cache = [`Dir::Cache=${join(work, 'cache')}`, 'APT::Sandbox::User=root', 'Acquire::Languages=none'];
  const privateLists = [...cache, `Dir::State::lists=${join(work, 'lists')}`];
  const run =
    (options: readonly string[]): Apt =>
    (program, ...args) =>
      step(work, program, [...options.flatMap((option) => ['-o', option]), '-qq', ...args]);
  const machine = run(cache);
  if (known(machine)) return machine;
  const own = run(privateLists);
  own('apt-get', 'update');
  return own;
}

/** Whether the machine's package lists are there and recent enough to download from. */
function known(apt: Apt): boolean {
  try {
    apt('apt-get', '--print-uris', 'download', 'redis-server');
    return true;
  } catch {
    return false;
  }
}

/** Downloads and unpacks packages and the libraries that they need and the machine lacks. */
function download(apt: Apt, work: string, wanted: readonly string[]): void {
  const queue = [...wanted];
  const seen = new Set(queue);
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    apt('apt-get', 'download', name);
    for (const library of librariesOf(apt, name)) {
      if (seen.has(library) || onMachine(library)) continue;
      seen.add(library);
      queue.push(library);
    }
  }
  for (const archive of readdirSync(work).filter((file) => file.endsWith('.deb')))
    step(work, 'dpkg', ['-x', archive, 'root']);
}

function librariesOf(apt: Apt, name: string): readonly string[] {
  const lines = apt('apt-cache', 'depends', '--no-recommends', '--no-suggests', name).split('\n');
  return lines.flatMap((line) => /^\s*\|?(?:Pre)?Depends: (lib[^\s<>]+)$/.exec(line)?.[1] ?? []);
}

function onMachine(library: string): boolean {
  const { status, stdout } = spawnSync('dpkg-query', ['-s', library], { encoding: 'utf8' });
  return status === 0 && /^Status: .* installed$/m.test(stdout);
}

function step(cwd: string, program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    timeout: APT_TIMEOUT_MS,
  });
  if (status === 0) return stdout;
  const action = args.find((arg) => /^[a-z-]+$/.test(arg) && !arg.startsWith('-')) ?? '';
  throw new Error(`${program} ${action}: ${error?.message ?? stderr.trim().split('\n')[0] ?? ''}`);
}

if (import.meta.main) {
  try {
    await redisServer();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
