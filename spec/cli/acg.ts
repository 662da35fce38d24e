import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { ended } from '../../tools/local-world/child.ts';
import { leash } from '../../tools/local-world/leash.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { programFile } from '../support/program.ts';

const MAIN = process.env['GATEWAY_ENTRY'] ?? join(import.meta.dirname, '../../src/main.ts');
/** The entry of a checkout, with the commands that no image has. */
export const TOOLS = programFile('tools/acg.ts');
/** Node takes both outputs for terminals, which show colours unless the environment forbids it. */
const TERMINAL = `for (const out of [process.stdout, process.stderr]) Object.assign(out, { isTTY: true, columns: 80, hasColors: () => true })`;

type Environment = Readonly<Record<string, string>>;

/** The end of a run of the command line. */
export interface CommandRun {
  readonly code: number | null;
  /** All of stdout, as bytes. */
  readonly output: Buffer;
  /** Its lines. */
  readonly lines: readonly string[];
  readonly errors: string;
}

/** A run of the command line that goes on. */
export interface RunningCommand {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  text(): string;
  errors(): string;
  /** Resolves once `so` holds of what was printed. @throws Error when it ended before */
  until(so: (text: string, errors: string) => boolean, what: string): Promise<void>;
  readonly ended: Promise<CommandRun>;
}

/**
 * Runs `acg` in this folder without this process's environment, and waits for its end. `env`: what
 * it has instead.
 */
export function acg(folder: string, args: readonly string[], env: Environment = {}): Promise<CommandRun> {
  return started([MAIN, ...args], folder, env).ended;
}

/** The same for the commands of a checkout. `input`: what stands at stdin. */
export function acgOfCheckout(
  folder: string,
  args: readonly string[],
  env: Environment = {},
  input = '',
): Promise<CommandRun> {
  return started([TOOLS, ...args], folder, env, input).ended;
}

/** The same, with outputs that it takes for terminals. */
export function acgOnTerminal(folder: string, args: readonly string[], env: Environment = {}): Promise<CommandRun> {
  const preload = `data:text/javascript,${encodeURIComponent(TERMINAL)}`;
  return started(['--import', preload, MAIN, ...args], folder, env).ended;
}

/** Starts `acg`, and does not wait for its end. */
export function startAcg(folder: string, args: readonly string[], env: Environment = {}): RunningCommand {
  return started([MAIN, ...args], folder, env);
}

function started(words: readonly string[], folder: string, env: Environment, input = ''): RunningCommand {
  const child = spawn(process.execPath, words, {
    cwd: folder,
    env: { ...COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  leash(child);
  // A command that does not read ends before.
  child.stdin.on('error', () => undefined).end(input);
  const [out, err]: [Buffer[], Buffer[]] = [[], []];
  const closed = new Promise((resolve) => child.once('close', resolve));
  let printed = Promise.withResolvers<void>();
  const keep = (chunks: Buffer[]) => (chunk: Buffer) => {
    chunks.push(chunk);
    printed.resolve();
    printed = Promise.withResolvers();
  };
  child.stdout.on('data', keep(out));
  child.stderr.on('data', keep(err));
  const text = () => Buffer.concat(out).toString();
  const errors = () => Buffer.concat(err).toString();
  return {
    child,
    text,
    errors,
    async until(so, what) {
      let over = false;
      void closed.then(() => {
        over = true;
      });
      while (!so(text(), errors())) {
        if (over) throw new Error(`acg ended before ${what}\n${text()}\n${errors()}`);
        await Promise.race([printed.promise, closed]);
      }
    },
    ended: (async () => {
      const { code } = await ended(child);
      await closed;
      return { code, output: Buffer.concat(out), lines: text().split('\n').filter(Boolean), errors: errors() };
    })(),
  };
}
