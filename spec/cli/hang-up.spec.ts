import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { writeConfig } from '../support/config.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { freePorts } from '../support/ports.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
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
