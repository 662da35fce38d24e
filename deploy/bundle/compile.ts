/**
 * `node deploy/bundle/compile.ts dist`: keeps beside the bundle what this Node makes of its
 * chunks, so that a start reads it instead of compiling. Another version of Node, and a processor
 * with other instructions, read nothing of it and compile as ever.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { BUNDLE_NAME } from './options.ts';
import { COMPILED_FOLDER } from './runtime.ts';

const STOP_AFTER_MS = 60_000;
/** Nothing listens there: this gateway sells nothing. */
const NOWHERE = 'http://127.0.0.1:9';
/** Base Sepolia and its USDC, which are public names. */
const PAYMENTS = {
  x402: {
    network: 'eip155:84532',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    assetName: 'USDC',
    assetVersion: '2',
    assetDecimals: 6,
    payTo: `0x${'11'.repeat(20)}`,
    facilitator: { mode: 'remote', url: NOWHERE, auth: { type: 'none' } },
  },
};
const RESOURCE = {
  name: 'Report',
  description: 'Prices of one city',
  inputSchema: { type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
  backend: { method: 'POST', path: '/report' },
  pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' },
  expose: ['http', 'mcp'],
  payments: ['x402'],
};
/** A store in turn: what the first run compiled is kept, the next one adds its own chunks. */
const STORES = [{ sqlite: { path: ':memory:' } }, { redis: { url: 'redis://127.0.0.1:9' } }];

/** Writes the folder of compiled code into the folder of a bundle. */
export async function compileBundle(folder: string): Promise<void> {
  const env = {
    NODE_COMPILE_CACHE: join(folder, COMPILED_FOLDER),
    NODE_COMPILE_CACHE_PORTABLE: '1',
    GATEWAY_DRAIN_SECONDS: '0',
    NODE_ENV: 'production',
  };
  rmSync(env.NODE_COMPILE_CACHE, { recursive: true, force: true });
  const work = mkdtempSync(join(tmpdir(), 'compile-'));
  try {
    for (const storage of STORES) {
      const [port, managementPort] = [await freePort(), await freePort()];
      const config = join(work, 'gateway.yaml');
      writeFileSync(config, JSON.stringify(configuration(port, managementPort, storage)));
      await serveOnce([join(folder, BUNDLE_NAME), 'serve', '--config', config], env, () => ask(port));
    }
    await ran(spawn(process.execPath, ['--input-type=module', '--eval', loadAll(folder)], { env, stdio: 'inherit' }));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  // Node keeps what it compiled from other users, and the gateway runs as one.
  for (const name of readdirSync(env.NODE_COMPILE_CACHE, { recursive: true, encoding: 'utf8' })) {
    const path = join(env.NODE_COMPILE_CACHE, name);
    chmodSync(path, statSync(path).isDirectory() ? 0o755 : 0o644);
  }
  chmodSync(env.NODE_COMPILE_CACHE, 0o755);
}

function configuration(port: number, managementPort: number, storage: object): object {
  const host = '127.0.0.1';
  return {
    version: 1,
    merchant: { id: 'compile', name: 'Compile', publicBaseUrl: `http://${host}:${port}` },
    server: { host, port },
    management: { host, port: managementPort },
    backend: { baseUrl: NOWHERE },
    protocols: { mcp: { enabled: true } },
    resources: { report: RESOURCE },
    payments: PAYMENTS,
    storage,
  };
}

/** The chunks that no run has loaded. The one that reads the command line has been. */
function loadAll(folder: string): string {
  const chunks = join(folder, 'chunks');
  const files = readdirSync(chunks).filter((name) => name.endsWith('.mjs') && !name.startsWith('gateway-'));
  const urls = files.map((name) => pathToFileURL(join(chunks, name)).href);
  return `await Promise.all(${JSON.stringify(urls)}.map((url) => import(url))); process.exit();`;
}

/** Runs a gateway until it listens and was asked, and ends it in order: else it writes nothing. */
async function serveOnce(args: readonly string[], env: NodeJS.ProcessEnv, whileUp: () => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = ran(child);
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.includes('"msg":"listening"')) continue;
    await whileUp();
    child.kill('SIGTERM');
  }
  await ended;
}

async function ran(child: ReturnType<typeof spawn>): Promise<void> {
  const longest = setTimeout(() => child.kill('SIGKILL'), STOP_AFTER_MS);
  const [code] = await once(child, 'exit');
  clearTimeout(longest);
  if (code !== 0) throw new Error(`a run of the bundle ended with ${code}`);
}

/** What the first agents ask. */
async function ask(port: number): Promise<void> {
  const origin = `http://127.0.0.1:${port}`;
  const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
  const input = JSON.stringify({ city: 'Berlin' });
  const answers = [
    await fetch(`${origin}/api/resources`),
    await fetch(`${origin}/api/resources/report/invoke`, { method: 'POST', headers: json, body: input }),
    await fetch(`${origin}/mcp`, { method: 'POST', headers: json, body: list }),
  ];
  for (const answer of answers) await answer.arrayBuffer();
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}

if (import.meta.main) await compileBundle(resolve(process.argv[2] ?? 'dist'));
