import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ended } from '../../tools/local-world/child.ts';
import { freePorts } from '../support/ports.ts';
import { childrenOf, commandOf, isThere, type Program, programFile, startProgram, until } from '../support/program.ts';

const PROJECT = join(import.meta.dirname, '../..');
const RUN = programFile('spec/support/run.ts');
/** Less than a gateway is given to end. */
const AT_ONCE_MS = 10_000;
const POLL_MS = 20;

describe('make run', { timeout: 240_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-run-'));
  const dataDir = join(folder, 'data');
  let temporary: string;
  let run: Program | undefined;
  beforeEach(() => {
    temporary = mkdtempSync(join(folder, 'tmp-'));
  });
  afterEach(() => void run?.child.kill('SIGKILL'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  const world = async (env: Readonly<Record<string, string>> = {}): Promise<Program & { readonly baseUrl: string }> => {
    const [agents = 0, management = 0, rpc = 0] = await freePorts(3);
    const ports = { GATEWAY_PORT: String(agents), MANAGEMENT_PORT: String(management), RPC_PORT: String(rpc) };
    const started = startProgram(RUN, [], { env: { ...ports, DATA_DIR: dataDir, TMPDIR: temporary, ...env } });
    run = started;
    return { ...started, baseUrl: `http://127.0.0.1:${agents}` };
  };
  const introduced = async (env?: Readonly<Record<string, string>>): ReturnType<typeof world> => {
    const started = await world(env);
    await until('the introduction', () => {
      assert.equal(started.child.exitCode, null, started.errors());
      return started.printed().includes('Ctrl-C ends everything');
    });
    const [, path = ''] = /^More to try +(\S+)$/m.exec(started.printed()) ?? [];
    assert.ok(started.printed().trim().split('\n').length <= 15);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    return { ...started, printed: () => `${started.printed()}${readFileSync(path, 'utf8')}` };
  };
  const named = ({ printed }: Program, name: string): string =>
    new RegExp(`^${name} +(\\S+)`, 'm').exec(printed())?.[1] ?? `no ${name}`;

  it('prints where console, configuration and log are, and hands LOG_LEVEL and OTEL_* on; SIGHUP ends it without remains', async () => {
    const started = await introduced({ LOG_LEVEL: 'info', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
    assert.equal((await fetch(named(started, 'Console'))).status, 200);
    assert.equal(statSync(named(started, 'Configuration')).mode & 0o777, 0o600);
    const logPath = named(started, 'Log');
    assert.equal(dirname(logPath), dataDir);
    await until('a line in the log', () => readFileSync(logPath, 'utf8').includes('"msg":"listening"'));
    await until('the trace of a call', () => /"path":"\/console".*"traceId"/.test(readFileSync(logPath, 'utf8')));
    for (const line of started.printed().split('\n'))
      if (/^ +(?:curl|npm)/.test(line)) assert.doesNotMatch(line, / http|#/, 'a URL without quotes, or a comment');
    started.child.kill('SIGHUP');
    assert.deepEqual(await ended(started.child), { code: 0, signal: null });
    assert.deepEqual(readdirSync(temporary), []);
  });

  it('a LOG_LEVEL that there is not is refused by name', async () => {
    const { child, errors } = await world({ LOG_LEVEL: 'loud' });
    assert.equal((await ended(child)).code, 1);
    assert.deepEqual(readdirSync(temporary), []);
    assert.match(errors(), /LOG_LEVEL: must be one of/);
  });

  it('a taken port is reported with the variable that moves it', async () => {
    const first = await introduced();
    for (const [variable, taken] of [
      ['GATEWAY_PORT', new URL(first.baseUrl).port],
      ['RPC_PORT', new URL(named(first, 'Chain')).port],
    ] as const) {
      const { child, errors } = await world({ [variable]: taken });
      assert.equal((await ended(child)).code, 1);
      assert.equal(errors(), `Port ${taken} is taken. Set ${variable} to use another one.\n`);
    }
    first.child.kill('SIGKILL');
  });

  it('ended while it starts, it leaves no key behind', async () => {
    const { child } = await world();
    await until('a directory', () => readdirSync(temporary).length > 0);
    child.kill('SIGTERM');
    assert.equal((await ended(child)).code, 1);
    assert.deepEqual(readdirSync(temporary), []);
  });

  it('ended a second time while the gateway does not end, it ends at once and leaves neither key nor gateway', async () => {
    const { child, baseUrl } = await introduced();
    const gateway = gatewayOf(child);
    process.kill(gateway, 'SIGSTOP');
    const begun = Date.now();
    const ending = ended(child);
    for (let over = false; !over; ) {
      child.kill('SIGTERM');
      over = await Promise.race([ending.then(() => true), delay(POLL_MS, false)]);
      assert.ok(Date.now() - begun < AT_ONCE_MS, 'it still waits for its gateway');
    }
    assert.deepEqual(await ending, { code: 1, signal: null });
    assert.deepEqual(readdirSync(temporary), []);
    await until('the end of the gateway', () => !isThere(gateway));
    await assert.rejects(fetch(`${baseUrl}/health`));
  });

  it('serves a mandate purchase and a checkout by three commands each; the checkout makes a repeated call once', async () => {
    const started = await introduced();
    const bought = await threeCommands(started, 'with a mandate');
    assert.equal(JSON.parse(bought.output).city, 'Berlin');
    assert.match(bought.notes, /^paid 0\.01 TUSD\ntransaction 0x[0-9a-f]{64}$/m);
    const { output } = await threeCommands(started, 'A checkout (ACP)');
    assert.match(output, /^HTTP\/1\.1 201 /);
    assert.match(output, /^HTTP\/1\.1 200 /m);
    assert.doesNotMatch(output, /^idempotent-replayed/m);
    const [order] = /"order":\{[^}]+\}/.exec(output) ?? [];
    assert.ok(order !== undefined && output.lastIndexOf(order) > output.indexOf(order), 'the session shows the order');
    const again = await threeCommands(started, 'A checkout (ACP)');
    assert.equal(again.output.match(/^idempotent-replayed: true/gm)?.length, 2);
    assert.ok(again.output.includes(order));
  });

  it("serves the merchant's site, a WebSocket, an address that is sold, and what stays owed by the printed commands", async () => {
    const started = await introduced();
    const site = await threeCommands(started, "The merchant's own site");
    assert.match(site.output, /<h1>Market shop<\/h1>.*"city":"Berlin","sky":"clear".*hello\n$/s);
    const sold = await commands(started, 'And a priced address of it', 2);
    assert.match(sold.output, /^HTTP\/1\.1 402 .*"city":"Berlin","currency":"EUR"/s);
    assert.match(sold.notes, /^paid 0\.01 TUSD\ntransaction 0x[0-9a-f]{64}$/m);
    const owed = await commands(started, 'The merchant fails', 2, 'goes on');
    assert.match(owed.output, /"code":"BACKEND_ERROR".*"delivered":false/s);
  });

  it('a disk that is full ends it with one line', async () => {
    const full = join(folder, 'full');
    mkdirSync(full);
    const [agents = 0] = await freePorts(1);
    symlinkSync('/dev/full', join(full, `gateway-${agents}.log`));
    const { child, errors } = await world({ DATA_DIR: full, GATEWAY_PORT: String(agents) });
    assert.equal((await ended(child)).code, 1);
    assert.equal(errors(), `the disk is full: ${join(full, `gateway-${agents}.log`)}\n`);
    assert.deepEqual(readdirSync(temporary), []);
  });
});

/** What commands printed. */
interface Printed {
  readonly output: string;
  readonly notes: string;
}

function threeCommands(started: Program, heading: string): Promise<Printed> {
  return commands(started, heading, 3);
}

/** Runs the commands under a heading. */
async function commands(
  { printed }: Program,
  heading: string,
  count: number,
  onFailure: 'ends' | 'goes on' = 'ends',
): Promise<Printed> {
  const lines = printed().split('\n');
  const at = lines.findIndex((line) => line.includes(heading));
  const script = lines.slice(at + 1, at + 1 + count).join('\n');
  const shell = spawn('bash', [onFailure === 'ends' ? '-ec' : '-c', script], {
    cwd: PROJECT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [output, notes]: [string[], string[]] = [[], []];
  shell.stdout.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  shell.stderr.on('data', (chunk: Buffer) => notes.push(chunk.toString()));
  assert.equal((await ended(shell)).code, 0, notes.join(''));
  return { output: output.join(''), notes: notes.join('') };
}

/** The process that serves, among the children. */
function gatewayOf(child: ChildProcess): number {
  const [gateway, ...others] = childrenOf(child).filter((pid) => commandOf(pid).includes('serve'));
  assert.ok(gateway !== undefined && others.length === 0);
  return gateway;
}
