import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ended } from '../support/child.ts';
import { freePorts } from '../support/ports.ts';

/** What came of the commands of a README. */
export interface ReadmeRun {
  readonly code: number | null;
  readonly said: string;
  readonly errors: string;
  /** The ports that still answered when the last command had ended. */
  readonly answering: readonly number[];
}

/**
 * Runs the commands of an example's README as they stand, in their order and in one shell, with its
 * `config.yaml`. `taken`: the ports of the example, which may be in use where tests run; free ones
 * take their places.
 */
export async function readmeOf(example: string, taken: readonly string[]): Promise<ReadmeRun> {
  const directory = mkdtempSync(path.join(tmpdir(), 'acg-example-'));
  const ports = await freePorts(taken.length);
  const moved = (text: string): string =>
    text.replaceAll(new RegExp(taken.join('|'), 'g'), (port) => String(ports[taken.indexOf(port)]));
  const config = path.join(directory, 'config.yaml');
  writeFileSync(config, moved(readFileSync(`${example}/config.yaml`, 'utf8')));
  const blocks = [...readFileSync(`${example}/README.md`, 'utf8').matchAll(/```sh\n([\s\S]*?)```/g)];
  assert.ok(blocks.length > 0, 'the README has commands');
  const commands = moved(blocks.map(([, block]) => block).join('\n')).replaceAll(`${example}/config.yaml`, config);
  // Nobody routes to this gateway, so it need not wait before it ends. A group of its own: whatever
  // is left is ended with it.
  const env = { ...process.env, GATEWAY_DRAIN_SECONDS: '0' };
  const shell = spawn('bash', ['-c', `set -e\n${commands}`], {
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, errors]: [string[], string[]] = [[], []];
  shell.stdout.setEncoding('utf8').on('data', (text: string) => out.push(text));
  shell.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  const { code } = await ended(shell);
  const answering: number[] = [];
  for (const port of ports) if (await answers(port)) answering.push(port);
  endGroup(shell.pid);
  rmSync(directory, { recursive: true });
  return { code, said: out.join(''), errors: errors.join(''), answering };
}

async function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    () => true,
    () => false,
  );
}

function endGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL');
  } catch {
    // All of them had ended by themselves.
  }
}
