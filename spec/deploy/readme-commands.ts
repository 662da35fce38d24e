/** Runs the README of an example, for the specs of `deploy/examples`. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ended } from '../support/child.ts';
import { freePorts } from '../support/ports.ts';

/** The ports of an example, which may be in use where tests run: free ones replace them. */
const PORTS = ['8402', '8403', '3000'];

/**
 * Runs the commands of an example's README as they are written, in their order and in one shell,
 * with its `config.yaml`. Asserts that they succeed, print `wanted` in this order, and leave no
 * port open. Resolves with all that they printed.
 */
export async function runReadme(example: string, wanted: readonly string[]): Promise<string> {
  const directory = mkdtempSync(path.join(tmpdir(), 'acg-example-'));
  const ports = await freePorts(PORTS.length);
  const moved = (text: string): string =>
    text.replaceAll(new RegExp(PORTS.join('|'), 'g'), (port) => String(ports[PORTS.indexOf(port)]));
  const config = path.join(directory, 'config.yaml');
  writeFileSync(config, moved(readFileSync(`${example}/config.yaml`, 'utf8')));
  const blocks = [...readFileSync(`${example}/README.md`, 'utf8').matchAll(/```sh\n([\s\S]*?)```/g)];
  assert.ok(blocks.length > 0, 'the README has commands');
  const commands = moved(blocks.map(([, block]) => block).join('\n')).replaceAll(`${example}/config.yaml`, config);
  // The gateway has no endpoints, so it need not wait before it ends. The shell has a process group
  // of its own, which is ended with all that is left.
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
  const printed = out.join('');
  assert.equal(code, 0, `${printed}\n${errors.join('')}`);
  assert.deepEqual(answering, [], 'the last command ends what the README started');
  let from = 0;
  for (const text of wanted) {
    const at = printed.indexOf(text, from);
    assert.ok(at >= 0, `${text} is missing or not in order:\n${printed.slice(from)}`);
    from = at + 1;
  }
  return printed;
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
    // All processes of the group have ended.
  }
}
