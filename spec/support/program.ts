/** Programs in processes of their own, and waiting for what they print and do. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { COMPILE_CACHE } from './compile-cache.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Longest wait for what a process does, milliseconds. */
const PATIENCE_MS = 60_000;
const POLL_MS = 20;

/** A running program. */
export interface Program {
  readonly child: ChildProcess;
  printed(): string;
  errors(): string;
}

interface Surroundings {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * The file that is run as a program of this checkout: its source, unless PROGRAMS names the folder
 * that `bundledPrograms` has built.
 */
export function programFile(source: string): string {
  return join(process.env['PROGRAMS'] ?? ROOT, source);
}

/** Runs a file with Node, without this process's environment but for PATH. */
export function startProgram(file: string, args: readonly string[], surroundings: Surroundings = {}): Program {
  return startCommand(process.execPath, [file, ...args], surroundings);
}

/** The same for a program of another kind. */
export function startCommand(command: string, args: readonly string[], { cwd, env = {} }: Surroundings = {}): Program {
  const [printed, errors]: [string[], string[]] = [[], []];
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env['PATH'], ...COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.on('data', (chunk: Buffer) => printed.push(chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()));
  return { child, printed: () => printed.join(''), errors: () => errors.join('') };
}

/** Resolves once it holds. @throws AssertionError when it does not in time */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, `not in time: ${what}`);
    await delay(POLL_MS);
  }
}

/** The processes that a process has started and that are there; none of one that has ended. */
export function childrenOf({ pid = 0, exitCode, signalCode }: ChildProcess): readonly number[] {
  return exitCode !== null || signalCode !== null ? [] : childrenOfPid(pid);
}

/** The same of a process that is there. */
export function childrenOfPid(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
}

/** The words of its command line. */
export function commandOf(pid: number): readonly string[] {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
}

/** Whether a process is there and runs. */
export function isThere(pid: number): boolean {
  try {
    // An ended process is listed until its parent has read its end.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
