/** Starts anvil, the node of the local chain. */

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { LOCAL_CHAIN_ID } from '../../src/payments/pricing/networks.ts';
import { type Ending, ended, terminate } from './child.ts';
import { leash } from './leash.ts';

/** Until "Listening on" must have been printed, milliseconds. */
const START_TIMEOUT_MS = 15_000;
const STOP_GRACE_MS = 2_000;
/** The same for one that writes its chain to a file. */
const KEEP_GRACE_MS = 30_000;

/**
 * A running anvil without any account of its own: the well-known development keys hold nothing
 * here.
 */
interface Anvil {
  readonly rpcUrl: string;
  readonly pid: number;
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<Ending>;
  stop(): Promise<void>;
}

/**
 * Starts anvil on 127.0.0.1, one block per transaction. `port`: 0 takes any free one. `state`: a
 * file for its blocks, which `stop` writes and a start reads; what has no block is forgotten.
 * `chainId`: that of development chains unless given.
 * @throws Error in one line where there is no anvil
 */
export async function startAnvil(port: number, state?: string, chainId = LOCAL_CHAIN_ID): Promise<Anvil> {
  const arguments_ = ['--port', String(port), '--host', '127.0.0.1', '--accounts', '0', '--auto-impersonate'];
  const program = findAnvil([import.meta.url, join(process.cwd(), 'here')]);
  if (state !== undefined) arguments_.push('--state', state);
  const child = spawn(program, [...arguments_, '--chain-id', String(chainId)], {
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
    ended: ended(child),
    stop: async () => {
      await terminate(child, state === undefined ? STOP_GRACE_MS : KEEP_GRACE_MS);
    },
  };
}

/** How the packages of anvil call a processor, where it is not as Node does. */
const PROCESSORS: Readonly<Record<string, string>> = { x64: 'amd64' };

/**
 * The program: of the package for this machine, as modules at these places find it, else of PATH.
 * @param from paths or file URLs of modules
 * @throws Error that says what to install
 */
export function findAnvil(from: readonly string[], path = process.env['PATH'] ?? ''): string {
  const packaged = `@foundry-rs/anvil-${process.platform}-${PROCESSORS[process.arch] ?? process.arch}`;
  for (const place of from) {
    try {
      return createRequire(place).resolve(`${packaged}/bin/anvil`);
    } catch {
      // Another place may have it.
    }
  }
  const found = path
    .split(delimiter)
    .map((directory) => join(directory, 'anvil'))
    .find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new Error(
    'there is no anvil for the local chain: npm install @foundry-rs/anvil in this folder, or install Foundry (getfoundry.sh) so that anvil is on PATH',
  );
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
    const exited = (code: number | null) => fail(`ended with ${code}`);
    child.once('exit', exited);
    child.stderr?.on('data', (chunk: Buffer) => output.push(chunk.toString()));
    if (child.stdout === null) return;
    // Read on after the start: a full pipe would stop the chain. Only the head is kept.
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (output.length < 100) output.push(line);
      const address = /^Listening on (\S+)$/.exec(line)?.[1];
      if (address === undefined) return;
      clearTimeout(timer);
      child.off('exit', exited);
      resolve(address);
    });
  });
}
