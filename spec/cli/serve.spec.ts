import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import express from 'express';
import { stringify } from 'yaml';
import { listenAt } from '../../src/cli/open-agents.ts';
import { collectStart } from '../../src/cli/serve.ts';
import { createListener } from '../../src/server/listener/listen.ts';
import { ended } from '../../tools/local-world/child.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { writeConfig } from '../support/config.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { freePorts } from '../support/ports.ts';

/** A listener on a system that answers so. */
function refusing(code: string) {
  return { listen: () => Promise.reject(Object.assign(new Error(`listen ${code}`), { code })) };
}

describe('an address that cannot be listened on', () => {
  it('of another machine names the host', async () => {
    const listener = createListener({ app: express(), onRefused: () => undefined });
    await assert.rejects(listenAt(listener, 'server', { host: '203.0.113.1', port: 8402 }), {
      message: 'server.host: 203.0.113.1:8402 is no address of this machine (EADDRNOTAVAIL)',
    });
  });

  const REFUSALS = [
    ['EADDRINUSE', '::1', 'management.port: [::1]:80 is taken by another process (EADDRINUSE)'],
    ['EACCES', '0.0.0.0', 'management.port: 0.0.0.0:80 may not be opened by this user (EACCES)'],
    ['EMFILE', '0.0.0.0', 'listen EMFILE'],
  ] as const;
  for (const [code, host, message] of REFUSALS)
    it(`${code} on ${host} is reported as "${message}"`, () =>
      assert.rejects(listenAt(refusing(code), 'management', { host, port: 80 }), { message }));
});

const MAIN = process.env['GATEWAY_ENTRY'] ?? join(import.meta.dirname, '../../src/main.ts');

interface Run {
  readonly code: number | null;
  readonly errors: string;
  /** The lines of the JSON log. */
  readonly log: readonly LogLine[];
}

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly component?: string;
  readonly err?: { readonly type: string; readonly message: string };
}

const FATAL = 60;

describe('the command line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-cli-'));
  let taken: Server;
  let takenPort: number;
  before(async () => {
    [takenPort = 0] = await freePorts(1);
    taken = createServer();
    await new Promise<void>((resolve) => taken.listen(takenPort, '127.0.0.1', resolve));
  });
  after(() => {
    taken.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const config = (ports: { readonly agents: number; readonly management: number }, storage: object): string => {
    const path = join(folder, `${ports.agents}-${ports.management}.yaml`);
    const server = { host: '127.0.0.1' };
    const document = {
      version: 1,
      merchant: { id: 'cli', name: 'Cli', publicBaseUrl: 'http://127.0.0.1:8402' },
      server: { ...server, port: ports.agents },
      management: { ...server, port: ports.management },
      backend: { baseUrl: 'http://127.0.0.1:3000' },
      storage,
      resources: {
        free: { name: 'Free', backend: { method: 'GET', path: '/' }, pricing: { type: 'free' }, expose: ['http'] },
      },
    };
    writeFileSync(path, stringify(document));
    return path;
  };
  const acg = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> => {
    const child = spawn(process.execPath, [MAIN, ...args], {
      cwd: folder,
      env: { ...COMPILE_CACHE, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [errors, output, { code }] = await Promise.all([text(child.stderr), text(child.stdout), ended(child)]);
    const lines = output.split('\n').filter((line) => line.startsWith('{'));
    return { code, errors, log: lines.map((line): LogLine => JSON.parse(line)) };
  };

  const stores = { sqlite: { sqlite: { path: ':memory:' } }, redis: { redis: { url: 'redis://127.0.0.1:1' } } };
  for (const [name, storage] of Object.entries(stores))
    for (const which of ['agents', 'management'] as const)
      it(`serve on ${name} ends when the ${which} port is taken, and leaves nothing listening`, async () => {
        const [free = 0] = await freePorts(1);
        const ports =
          which === 'agents' ? { agents: takenPort, management: free } : { agents: free, management: takenPort };
        const run = await acg(['serve', '--config', config(ports, storage)]);
        assert.equal(run.code, 1);
        const setting = which === 'agents' ? 'server.port' : 'management.port';
        const reason = `${setting}: 127.0.0.1:${takenPort} is taken by another process (EADDRINUSE)`;
        assert.equal(run.errors, `${reason}\n`);
        const last = run.log.at(-1);
        assert.deepEqual([last?.level, last?.msg, last?.err?.message], [FATAL, 'not started', reason]);
        // What is closed because of it has not failed.
        if (name === 'sqlite') assert.deepEqual(run.log.slice(0, -1), []);
      });

  it('a configuration that is refused is the last line of the log too, with every path', async () => {
    const run = await acg(['serve', '--config', config({ agents: 0, management: 1 }, {})]);
    assert.equal(run.code, 78);
    const last = run.log.at(-1);
    assert.deepEqual([last?.level, last?.msg, last?.err?.type], [FATAL, 'not started', 'ConfigError']);
    assert.match(last?.err?.message ?? '', /storage: must be/);
    // For a person, each line of the file is shown as well.
    assert.equal(run.errors.replaceAll(/^ *\d* \| .*\n/gm, ''), `${last?.err?.message}\n`);
  });

  it('wrong usage exits 64 with one line, a wrong configuration 78 with every path', async () => {
    const unknown = await acg(['sell']);
    assert.deepEqual([unknown.code, unknown.errors], [64, 'unknown command sell; acg --help lists the commands\n']);
    const option = await acg(['--colour', 'red']);
    assert.equal(option.code, 64);
    const missing = await acg(['validate', '--config', join(folder, 'nowhere.yaml')]);
    assert.deepEqual([missing.code, missing.errors.includes('nowhere.yaml')], [78, true]);
  });
});

const GARBAGE_OBJECTS = 400_000;

describe('the collection after a start', () => {
  it('gives the memory of garbage back, and leaves no function behind that collects', () => {
    let garbage: unknown[] | undefined = Array.from({ length: GARBAGE_OBJECTS }, (_, at) => ({ at }));
    const full = process.memoryUsage().heapTotal;
    assert.ok(garbage.length > 0);
    garbage = undefined;
    collectStart();
    assert.ok(process.memoryUsage().heapTotal < full - 5_000_000);
    assert.equal('gc' in globalThis, false);
  });
});

const PATIENCE_MS = 60_000;
const POLL_MS = 20;

/** Sends SIGHUP to the process that loads it, as soon as it listens for it. */
const SIGNALS_ITSELF = `data:text/javascript,${encodeURIComponent(`
  process.on('newListener', (name) => {
    if (name === 'SIGHUP') setImmediate(() => process.kill(process.pid, name));
  });
`)}`;

/** False, too, for a process that has ended and was not waited for. */
function isThere(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describe('SIGHUP', { timeout: 60_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-hang-up-'));
  const configPath = join(folder, 'gateway.yaml');
  let gateway: GatewayProcess;
  let start: (execArgv: readonly string[]) => Promise<GatewayProcess>;
  before(async () => {
    const [agents = 0, management = 0] = await freePorts(2);
    const baseUrl = `http://127.0.0.1:${agents}`;
    const backend = { method: 'GET', path: '/' };
    await writeConfig(configPath, {
      version: 1,
      merchant: { id: 'hang-up', name: 'Hang up', publicBaseUrl: baseUrl },
      server: { host: '127.0.0.1', port: agents },
      management: { host: '127.0.0.1', port: management },
      backend: { baseUrl: 'http://127.0.0.1:3000' },
      storage: { sqlite: { path: ':memory:' } },
      resources: { free: { name: 'Free', backend, pricing: { type: 'free' }, expose: ['http'] } },
    });
    start = (execArgv) => startGateway({ configPath, baseUrl, execArgv, env: { GATEWAY_DRAIN_SECONDS: '0' } });
    gateway = await start([]);
  });
  after(async () => {
    await gateway?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  it('asks for the configuration to be read again, and the gateway serves on', async () => {
    for (const times of [1, 2]) {
      process.kill(gateway.pid, 'SIGHUP');
      const lines = () => gateway.log.filter(({ msg }) => msg === 'config unchanged');
      const logged = gateway.logged(() => lines().length === times);
      assert.equal(await Promise.race([logged.then(() => 'logged'), gateway.ended]), 'logged');
    }
    assert.equal((await fetch(`${gateway.baseUrl}/health`)).status, 200);
  });

  it('of a gateway that starts lets it read the configuration once it serves', async () => {
    await gateway.stop();
    gateway = await start(['--import', SIGNALS_ITSELF]);
    const logged = gateway.logged(({ msg }) => msg === 'config unchanged');
    assert.equal(await Promise.race([logged.then(() => 'logged'), gateway.ended]), 'logged');
  });

  it('leaves SIGTERM to end the gateway', async () => {
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null });
  });

  it('of a terminal that closes ends the gateway with it', async () => {
    const pidPath = join(folder, 'pid');
    const run = `echo $$ > '${pidPath}'; exec '${process.execPath}' '${MAIN}' serve --config '${configPath}'`;
    const terminal = spawn('script', ['--quiet', '--flush', '--command', run, '/dev/null'], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { PATH: process.env['PATH'] ?? '', SHELL: '/bin/sh' },
    });
    for await (const printed of terminal.stdout) if (String(printed).includes('"msg":"listening"')) break;
    const pid = Number(readFileSync(pidPath, 'utf8'));
    assert.ok(isThere(pid));
    terminal.kill('SIGKILL');
    const deadline = Date.now() + PATIENCE_MS;
    while (isThere(pid)) {
      if (Date.now() > deadline) process.kill(pid, 'SIGKILL');
      assert.ok(Date.now() < deadline, 'the gateway outlived its terminal');
      await delay(POLL_MS);
    }
  });
});
