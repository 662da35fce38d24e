/** Starts anvil, the node of the local chain. */

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { terminate } from './child.ts';
import { leash } from './leash.ts';

/** CAIP-2 reference of the local chain. */
export const LOCAL_CHAIN_ID = 31337;

/** Until "Listening on" must have been printed, milliseconds. */
const START_TIMEOUT_MS = 15_000;
const STOP_GRACE_MS = 2_000;

/**
 * A running anvil without any account of its own: the well-known development keys hold nothing
 * here.
 */
export interface Anvil {
  readonly rpcUrl: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts anvil on a free port of 127.0.0.1, one block per transaction. */
export async function startAnvil(chainId: number = LOCAL_CHAIN_ID): Promise<Anvil> {
  const arguments_ = ['--port', '0', '--host', '127.0.0.1', '--accounts', '0', '--auto-impersonate'];
  const child = spawn(anvilBinary(), [...arguments_, '--chain-id', String(chainId)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: Ctrl-C reaches only the owner, which ends everything in order. `leash.ts`
    // covers the rest.
    detached: true,
  });
  leash(child);
  const rpcUrl = `http://${await listeningAddress(child)}`;
  return {
    rpcUrl,
    pid: child.pid ?? 0,
    stop: async () => {
      await terminate(child, STOP_GRACE_MS);
    },
  };
}

function anvilBinary(): string {
  try {
    return createRequire(import.meta.url).resolve('@foundry-rs/anvil-linux-amd64/bin/anvil');
  } catch {
    // Another platform: a Foundry installation is as good.
  }
  const found = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((directory) => join(directory, 'anvil'))
    .find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Error('No local chain: install the optional package @foundry-rs/anvil-linux-amd64, or put anvil on PATH.');
}

function listeningAddress(child: ChildProcess & { readonly stdout: NodeJS.ReadableStream | null }): Promise<string> {
  const output: string[] = [];
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(new Error(`anvil ${why}: ${output.join('\n').slice(-2_000)}`));
    };
    const timer = setTimeout(() => fail(`printed nothing for ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code) => fail(`ended with ${code}`));
    child.stderr?.on('data', (chunk: Buffer) => output.push(chunk.toString()));
    if (child.stdout === null) return;
    // Read on after the start: a full pipe would stop the chain. Only the head is kept.
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (output.length < 100) output.push(line);
      const address = /^Listening on (\S+)$/.exec(line)?.[1];
      if (address === undefined) return;
      clearTimeout(timer);
      child.removeAllListeners('exit');
      resolve(address);
    });
  });
}
