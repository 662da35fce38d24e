/** Gateways in processes of their own: started, awaited, stopped and killed. */

import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { type Ending, ended, terminate } from './child.ts';
import { COMPILE_CACHE } from './compile-cache.ts';
import { type ConfigObject, type WorldParts, worldConfig, writeConfig } from './config.ts';
import { leash } from './leash.ts';
import { freePorts } from './ports.ts';

/** One JSON line of the gateway's log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** A gateway in a process of its own. */
export interface GatewayProcess {
  readonly baseUrl: string;
  readonly pid: number;
  /** The JSON lines of its log so far, oldest first; the newest 10,000. */
  readonly log: readonly LogLine[];
  /** The end of its output, for a failure message. */
  output(): string;
  /** Resolves with the first line, past or to come, that the predicate accepts. */
  logged(predicate: (line: LogLine) => boolean): Promise<LogLine>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<Ending>;
  /** SIGTERM, and SIGKILL after 15 s. */
  stop(): Promise<Ending>;
  /** SIGKILL: no handler runs. */
  kill(): Promise<Ending>;
}

/** How a gateway is run. */
export interface Launch {
  /** Its whole environment but PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** A file that gets its output. */
  readonly logPath?: string | undefined;
  /** Default: the file that GATEWAY_ENTRY names, for example a bundle, else src/main.ts. */
  readonly entry?: string | undefined;
  /** Arguments for Node itself, for example a module to load first. */
  readonly execArgv?: readonly string[];
  readonly readyTimeoutMs?: number;
}

export interface GatewayOptions extends Launch {
  readonly configPath: string;
  /** Where its agent listener will answer, from the configuration. */
  readonly baseUrl: string;
}

/** A gateway with its configuration written, which does not run yet. */
export interface PreparedGateway {
  readonly baseUrl: string;
  readonly managementUrl: string;
  readonly config: ConfigObject;
  readonly configPath: string;
  /** Starts it, without a drain unless `env` names one. */
  start(launch?: Launch): Promise<GatewayProcess>;
}

/** A configuration but for what `prepareGateway` chooses unless it is given. */
export type PreparedParts = Omit<WorldParts, 'ports' | 'storage'> & {
  /** Default: free ones. */
  readonly ports?: WorldParts['ports'] | undefined;
  /** Default: a SQLite file in the directory. */
  readonly storage?: WorldParts['storage'] | undefined;
};

const PROJECT = join(import.meta.dirname, '../..');
const READY_TIMEOUT_MS = 30_000;
/** Between two looks at /ready; readiness is answered from memory, so looking is cheap. */
const READY_POLL_MS = 40;
const STOP_GRACE_MS = 15_000;
const OUTPUT_TAIL_CHARS = 8_192;
const MAX_LOG_LINES = 10_000;

/** Writes the configuration of a gateway into a directory. */
export async function prepareGateway(directory: string, parts: PreparedParts): Promise<PreparedGateway> {
  const ports = parts.ports ?? (await twoFreePorts());
  const storage = parts.storage ?? { sqlite: { path: join(directory, `${ports.agents}.db`) } };
  const config = worldConfig({ ...parts, ports, storage });
  const configPath = join(directory, `${ports.agents}.yaml`);
  await writeConfig(configPath, config);
  const baseUrl = `http://127.0.0.1:${ports.agents}`;
  return {
    baseUrl,
    managementUrl: `http://127.0.0.1:${ports.management}`,
    config,
    configPath,
    // No load balancer routes to it, so there is no traffic to wait for.
    start: ({ env, ...launch } = {}) =>
      startGateway({ ...launch, configPath, baseUrl, env: { GATEWAY_DRAIN_SECONDS: '0', ...env } }),
  };
}

async function twoFreePorts(): Promise<WorldParts['ports']> {
  const [agents = 0, management = 0] = await freePorts(2);
  return { agents, management };
}

/** Starts a gateway and waits until GET /ready is 200. @throws Error with its output otherwise */
export async function startGateway(options: GatewayOptions): Promise<GatewayProcess> {
  const entry = options.entry ?? process.env['GATEWAY_ENTRY'] ?? join(PROJECT, 'src/main.ts');
  const child = spawn(process.execPath, [...(options.execArgv ?? []), entry, 'serve', '--config', options.configPath], {
    cwd: PROJECT,
    // A clean environment: variables of the developer's shell must not configure a test.
    env: { PATH: process.env['PATH'] ?? '', ...COMPILE_CACHE, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: Ctrl-C reaches only the owner, which ends everything in order.
    detached: true,
  });
  leash(child);
  const ending = ended(child);
  const closed = once(child, 'close');
  const printed = readOutput(child.stdout, child.stderr);
  if (options.logPath !== undefined) {
    const file = createWriteStream(options.logPath, { flags: 'a', mode: 0o600 });
    for (const output of [child.stdout, child.stderr]) output.pipe(file, { end: false });
    void closed.then(() => file.end());
  }
  const gateway: GatewayProcess = {
    baseUrl: options.baseUrl,
    pid: child.pid ?? 0,
    log: printed.log,
    output: printed.tail,
    logged: printed.logged,
    ended: ending,
    stop: () => terminate(child, STOP_GRACE_MS),
    kill: () => {
      child.kill('SIGKILL');
      return ending;
    },
  };
  const known = new AbortController();
  const problem = await Promise.race([
    untilReady(options.baseUrl, options.readyTimeoutMs ?? READY_TIMEOUT_MS, known.signal),
    ending.then(({ code, signal }) => `ended with ${signal ?? code}`),
  ]);
  // A poll that goes on would keep this process alive.
  known.abort();
  if (problem === undefined) return gateway;
  await gateway.kill();
  // The end of its output may arrive after its exit.
  await closed;
  throw new Error(`The gateway ${problem}.\n${gateway.output()}`);
}

/** Resolves to undefined once ready, to the reason when time is up or `known` is aborted. */
async function untilReady(baseUrl: string, timeoutMs: number, known: AbortSignal): Promise<string | undefined> {
  const deadline = Date.now() + timeoutMs;
  let last = 'no answer';
  while (Date.now() < deadline && !known.aborted) {
    try {
      const response = await fetch(`${baseUrl}/ready`, { signal: AbortSignal.timeout(READY_TIMEOUT_MS) });
      const body = await response.text();
      if (response.status === 200) return undefined;
      last = `${response.status} ${body}`;
    } catch {
      // Not listening yet.
    }
    await delay(READY_POLL_MS);
  }
  return `was not ready after ${timeoutMs} ms (last: ${last})`;
}

function readOutput(stdout: NodeJS.ReadableStream, stderr: NodeJS.ReadableStream) {
  const log: LogLine[] = [];
  const lines = new EventEmitter();
  lines.setMaxListeners(0);
  let tail = '';
  const keep = (line: string) => {
    tail = `${tail}${line}\n`.slice(-OUTPUT_TAIL_CHARS);
  };
  createInterface({ input: stderr }).on('line', keep);
  createInterface({ input: stdout }).on('line', (line) => {
    keep(line);
    const parsed = jsonLine(line);
    if (parsed === undefined) return;
    log.push(parsed);
    if (log.length > MAX_LOG_LINES) log.shift();
    lines.emit('line', parsed);
  });
  const logged = (predicate: (line: LogLine) => boolean): Promise<LogLine> => {
    const past = log.find(predicate);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve) => {
      const look = (line: LogLine) => {
        if (!predicate(line)) return;
        lines.off('line', look);
        resolve(line);
      };
      lines.on('line', look);
    });
  };
  return { log, logged, tail: () => tail };
}

function jsonLine(line: string): LogLine | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as LogLine) : undefined;
  } catch {
    return undefined;
  }
}
