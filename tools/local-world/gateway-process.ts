/** A gateway in a process of its own: started, awaited, stopped and killed. */

import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { type Ending, ended, terminate } from './child.ts';
import { leash } from './leash.ts';

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
export interface GatewayStart {
  /** The program, whose command `serve` is run. */
  readonly entry: string;
  readonly configPath: string;
  /** Where its agent listener will answer, from the configuration. */
  readonly baseUrl: string;
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Arguments for Node itself, for example a module to load first. */
  readonly execArgv?: readonly string[];
  /** Gets each line that it prints, as it comes. */
  readonly onLine?: (line: string) => void;
  readonly readyTimeoutMs?: number;
}

/** It ended, or was not ready in time; `fatal` is the cause that its log tells. */
export class NotStartedError extends Error {
  readonly fatal: string | undefined;

  constructor(message: string, fatal: string | undefined) {
    super(message);
    this.name = 'NotStartedError';
    this.fatal = fatal;
  }
}

const READY_TIMEOUT_MS = 30_000;
/** Between two looks at /ready; readiness is answered from memory, so looking is cheap. */
const READY_POLL_MS = 40;
const STOP_GRACE_MS = 15_000;
const OUTPUT_TAIL_CHARS = 8_192;
const MAX_LOG_LINES = 10_000;

/**
 * Starts a gateway and waits until GET /ready is 200.
 * @throws NotStartedError with the end of its output
 */
export async function startGatewayProcess(start: GatewayStart): Promise<GatewayProcess> {
  const { entry, configPath, baseUrl, env, execArgv = [] } = start;
  const child = spawn(process.execPath, [...execArgv, entry, 'serve', '--config', configPath], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: Ctrl-C reaches only the owner, which ends everything in order.
    detached: true,
  });
  leash(child);
  const ending = ended(child);
  const closed = once(child, 'close');
  const printed = readOutput(child.stdout, child.stderr, start.onLine);
  const gateway: GatewayProcess = {
    baseUrl,
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
    untilReady(baseUrl, start.readyTimeoutMs ?? READY_TIMEOUT_MS, known.signal),
    ending.then(({ code, signal }) => `ended with ${signal ?? code}`),
  ]);
  // A poll that goes on would keep this process alive.
  known.abort();
  if (problem === undefined) return gateway;
  await gateway.kill();
  // The end of its output may arrive after its exit.
  await closed;
  const fatal = printed.log.findLast(({ msg }) => msg === 'not started')?.['err'];
  throw new NotStartedError(`The gateway ${problem}.\n${gateway.output()}`, messageOf(fatal));
}

function messageOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('message' in error)) return undefined;
  return typeof error.message === 'string' ? error.message : undefined;
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

function readOutput(
  stdout: NodeJS.ReadableStream,
  stderr: NodeJS.ReadableStream,
  onLine: (line: string) => void = () => undefined,
) {
  const log: LogLine[] = [];
  const lines = new EventEmitter();
  lines.setMaxListeners(0);
  let tail = '';
  const keep = (line: string) => {
    tail = `${tail}${line}\n`.slice(-OUTPUT_TAIL_CHARS);
    onLine(line);
  };
  createInterface({ input: stderr }).on('line', keep);
  createInterface({ input: stdout }).on('line', (line) => {
    keep(line);
    const parsed = readLogLine(line);
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

/** Undefined for a line that is not of the log. */
export function readLogLine(line: string): LogLine | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as LogLine) : undefined;
  } catch {
    return undefined;
  }
}
