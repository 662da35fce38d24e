/** A real HAProxy before a gateway. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { debianProgram } from '../../../spec/support/debian.ts';
import { freePorts } from '../../../spec/support/ports.ts';
import { terminate } from '../../../tools/local-world/child.ts';
import { leash } from '../../../tools/local-world/leash.ts';

/** A real HAProxy before a gateway. */
export interface ReverseProxy {
  readonly url: string;
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 10_000;
const LOOK_EVERY_MS = 20;
const STOP_GRACE_MS = 2_000;
/** The prefix of the id of every request that HAProxy has seen. */
export const SEEN = 'seen-';

/**
 * Starts one that gives every request an id, and reuses its connections to the gateway for all
 * clients, so that the answer to a smuggled request would reach another client. @throws Error of
 * one line when HAProxy is not installed and cannot be downloaded
 */
export async function startHaproxy(gatewayUrl: string): Promise<ReverseProxy> {
  const { program, env } = await debianProgram({
    name: 'haproxy',
    variable: 'TEST_HAPROXY',
    folder: 'haproxy',
    packages: { names: ['haproxy'] },
    path: 'usr/sbin/haproxy',
    shows: '-v',
  });
  const [port = 0] = await freePorts(1);
  const directory = mkdtempSync(join(tmpdir(), 'acg-haproxy-'));
  const configuration = join(directory, 'haproxy.cfg');
  writeFileSync(configuration, configurationFor(port, new URL(gatewayUrl).host));
  const child = spawn(program, ['-db', '-f', configuration], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  leash(child);
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output = `${output}${chunk.toString()}`.slice(-2_000);
  });
  const stop = async (): Promise<void> => {
    await terminate(child, STOP_GRACE_MS);
    rmSync(directory, { recursive: true, force: true });
  };
  for (const deadline = Date.now() + READY_TIMEOUT_MS; !(await listens(port)); await delay(LOOK_EVERY_MS))
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`haproxy does not listen: ${output}`);
    }
  return { url: `http://127.0.0.1:${port}`, stop };
}

function configurationFor(port: number, gateway: string): string {
  return [
    'global',
    '  tune.bufsize 65536',
    'defaults',
    '  mode http',
    '  timeout connect 2s',
    '  timeout client 10s',
    '  timeout server 10s',
    '  timeout http-request 3s',
    '  timeout queue 30s',
    '  retry-on conn-failure empty-response',
    '  http-reuse always',
    'frontend agents',
    `  bind 127.0.0.1:${port}`,
    `  http-request set-header X-Request-Id ${SEEN}%[uuid()]`,
    '  default_backend gateway',
    'backend gateway',
    `  server gateway ${gateway} maxconn 4`,
    '',
  ].join('\n');
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
