/** Real Redis servers, each on a unix socket of its own. */

import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ended, terminate } from '../../tools/local-world/child.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { type RedisServer, redisServer } from './install-redis.ts';

/** A real Redis of one test, on a unix socket of its own. */
export interface TestRedis {
  /** unix:///path/of.sock */
  readonly url: string;
  readonly socketPath: string;
  /** Of the server that runs now; another one after `restart`. */
  readonly pid: number;
  /** SIGKILL: what the append-only file does not hold is gone. */
  kill(): Promise<void>;
  /** Starts again over the same files and the same socket. */
  restart(): Promise<void>;
  /** Ends the server and removes its files. */
  stop(): Promise<void>;
}

export interface RedisOptions {
  /** A port of 127.0.0.1 beside the socket, for servers that other servers must reach. */
  readonly port?: number;
  /**
   * Further arguments, for example `['--maxmemory', '10mb']`; a repeated setting wins over ours.
   */
  readonly args?: readonly string[];
}

/** A unix socket address may have 107 bytes; room is left for a longer temporary directory. */
const MAX_SOCKET_PATH = 100;
const MEMORY = '/dev/shm';
/** For the files of all servers that run at once. */
const MEMORY_ROOM_BYTES = 1_073_741_824;
const READY_TIMEOUT_MS = 10_000;
const STOP_GRACE_MS = 2_000;
const READY = /ready to accept connections/i;
/** Looked for once in a process: tests that kill servers start many. */
let installed: Promise<RedisServer> | undefined;

/**
 * Starts a redis-server with an append-only file, written every second. Never skips: throws when
 * there is no server.
 */
export async function startRedis(options: RedisOptions = {}): Promise<TestRedis> {
  const directory = mkdtempSync(join(home(), 'acg-redis-'));
  const socketPath = join(directory, 'r.sock');
  if (socketPath.length > MAX_SOCKET_PATH) throw new Error('TMPDIR is too long for a unix socket');
  const args = settings(directory, socketPath, options);
  const start = () => spawnServer(args, READY);
  let server = await start().catch((thrown: unknown) => {
    rmSync(directory, { recursive: true, force: true });
    throw thrown;
  });
  return {
    url: `unix://${socketPath}`,
    socketPath,
    get pid() {
      return server.pid ?? 0;
    },
    async kill() {
      server.kill('SIGKILL');
      await ended(server);
    },
    async restart() {
      server = await start();
    },
    async stop() {
      await terminate(server, STOP_GRACE_MS);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/**
 * In memory where the machine has room there: a disk that is busy with other work holds up `fsync`,
 * and with it every command. A killed server leaves its files behind in both.
 */
function home(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    accessSync(MEMORY, constants.W_OK);
    return bavail * bsize > MEMORY_ROOM_BYTES ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

function settings(directory: string, socketPath: string, { port, args = [] }: RedisOptions): readonly string[] {
  const own: readonly (readonly [string, string])[] = [
    ['port', String(port ?? 0)],
    ['bind', '127.0.0.1'],
    ['unixsocket', socketPath],
    ['dir', directory],
    ['save', ''],
    ['appendonly', 'yes'],
    ['appendfsync', 'everysec'],
    ['maxmemory-policy', 'noeviction'],
    ['daemonize', 'no'],
  ];
  return [...own.flatMap(([name, value]) => [`--${name}`, value]), ...args];
}

/**
 * Runs redis-server until its output has the line of readiness. @throws Error with its last
 * lines when none does.
 */
export async function spawnServer(args: readonly string[], ready: RegExp): Promise<ChildProcess> {
  installed ??= redisServer();
  const { program, env } = await installed;
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  leash(child);
  const lines: string[] = [];
  const spoken = new Promise<undefined>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        if (lines.push(line) > 20) lines.shift();
        if (ready.test(line)) resolve(undefined);
      });
    }
  });
  const failed = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(`ended with ${signal ?? code}`));
  });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('did not become ready'), READY_TIMEOUT_MS);
  });
  const problem = await Promise.race([spoken, failed, late]);
  clearTimeout(timer);
  if (problem === undefined) return child;
  child.kill('SIGKILL');
  throw new Error(`redis-server ${problem}\n${lines.join('\n')}`);
}
