import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { MOST_DEATHS } from '../../src/workers/pool.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { type ConfigObject, NO_CHAIN, writeConfig } from '../support/config.ts';
import { type GatewayProcess, type PreparedGateway, prepareGateway } from '../support/gateway-process.ts';
import { askHook } from '../support/hook.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { childrenOfPid } from '../support/program.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { scrape } from '../telemetry/scrape.ts';

const WORKERS = 2;
const INPUT = { city: 'Zurich' };
const POLL_MS = 10;
const FATAL = 60;

async function until(found: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await found())) await delay(POLL_MS);
}

describe('a gateway of two workers', { timeout: 120_000 }, () => {
  const ends = new AsyncDisposableStack();
  let redis: TestRedis;
  let backend: SampleBackend;
  let facilitator: HostileFacilitator;
  let prepared: PreparedGateway;
  let gateway: GatewayProcess;
  let buyer: Buyer;

  const start = async (): Promise<void> => {
    gateway = await prepared.start();
    ends.defer(async () => void (await gateway.kill()));
    // One worker is ready before the others.
    await gateway.logged(({ msg }) => msg === 'listening');
  };
  before(async () => {
    const directory = await temporaryDirectory(ends, 'acg-workers-');
    redis = ends.adopt(await startRedis(), (server) => server.stop());
    backend = ends.adopt(await startSampleBackend({ port: 0 }), (server) => server.stop());
    facilitator = ends.adopt(await startHostileFacilitator('eip155:31337'), (server) => server.stop());
    buyer = await createBuyer({ mint: async () => undefined, balanceOf: async () => 0n } as never, 0n);
    prepared = await prepareGateway(directory, {
      backendUrl: backend.url,
      chain: NO_CHAIN,
      storage: { redis: { url: redis.url } },
      facilitator: { mode: 'remote', url: facilitator.url },
      overrides: { server: { workers: WORKERS }, payments: { x402: { rpcUrl: undefined } } },
    });
    await start();
  });
  after(() => ends.disposeAsync());

  /** Over a connection of its own: workers get connections in turn. */
  const invoke = (id: string, input: object = {}, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(`${gateway.baseUrl}/api/resources/${id}/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close', ...headers },
      body: JSON.stringify(input),
    });
  const proof = async (): Promise<string> => {
    const quote = (await (await invoke('market_report', INPUT)).json()) as { payment: { envelope: unknown } };
    return buyer.pay(quote.payment.envelope);
  };
  const workersIn = (paths: (path: unknown) => boolean): ReadonlySet<unknown> =>
    new Set(gateway.log.filter(({ path, worker }) => worker !== undefined && paths(path)).map(({ worker }) => worker));
  const served = (text: string) => (path: unknown) => String(path).includes(text);

  it('serves calls by both, and one of them takes a payment that the other one answers again', async () => {
    const paid = await proof();
    const answers: string[] = [];
    for (let time = 0; time < 4; time += 1) {
      const answer = await invoke('market_report', INPUT, { 'payment-signature': paid });
      assert.equal(answer.status, 200);
      answers.push(await answer.text());
    }
    assert.equal(new Set(answers).size, 1);
    assert.equal(facilitator.calls.filter(({ path }) => path === '/settle').length, 1);
    await until(() => workersIn(served('market_report')).size === WORKERS);
  });

  it('has one answer of both at /metrics and /ready', async () => {
    const counted = (series: ReadonlyMap<string, number>): number =>
      [...series].reduce((sum, [key, value]) => (/^acg_calls_total.*free_greeting/.test(key) ? sum + value : sum), 0);
    const before = await scrape(prepared.managementUrl);
    for (let call = 0; call < 6; call += 1) await (await invoke('free_greeting')).text();
    const series = await scrape(prepared.managementUrl);
    assert.equal(counted(series) - counted(before), 6);
    assert.equal(series.get('acg_workers'), WORKERS);
    assert.equal(series.get('acg_config_outdated'), 0);
    const ready = await fetch(`${prepared.managementUrl}/ready`);
    assert.deepEqual([ready.status, ((await ready.json()) as { ready: boolean }).ready], [200, true]);
  });

  it('answers for both while one of them stands still', async () => {
    const [stopped = 0] = childrenOfPid(gateway.pid);
    const found = async (path: string) => {
      const answer = await fetch(`${prepared.managementUrl}${path}`);
      return [answer.status, (await answer.text()).includes('adapter-unreachable')];
    };
    const before = await scrape(prepared.managementUrl);
    process.kill(stopped, 'SIGSTOP');
    try {
      assert.deepEqual(await Promise.all(['/ready', '/routing'].map(found)), [
        [503, true],
        [503, true],
      ]);
      const series = await scrape(prepared.managementUrl);
      const counted = [...before].filter(([key]) => key.startsWith('acg_calls_total'));
      assert.ok(counted.length > 0);
      for (const [key, value] of counted) assert.equal(series.get(key), value, key);
    } finally {
      process.kill(stopped, 'SIGCONT');
    }
    await until(async () => (await found('/ready'))[0] === 200);
  });

  it('reloads in both or in none', async () => {
    const withLimits = (limits: object): ConfigObject => ({ ...prepared.config, limits });
    await writeConfig(prepared.configPath, withLimits({ rate: { perSecond: 2, burst: 4 } }));
    process.kill(gateway.pid, 'SIGHUP');
    await gateway.logged(({ msg }) => msg === 'config reloaded');
    const limitOf = async (): Promise<string | null> => (await invoke('free_greeting')).headers.get('ratelimit-policy');
    // Half of the burst of four belongs to each.
    const limits = [await limitOf(), await limitOf()];
    assert.deepEqual(limits, [limits[0], limits[0]]);
    assert.match(limits[0] ?? '', /2/);
    await writeConfig(prepared.configPath, withLimits({ maxStreams: 1 }));
    process.kill(gateway.pid, 'SIGHUP');
    const { problems } = await gateway.logged(({ msg }) => msg === 'config rejected');
    assert.match(JSON.stringify(problems), /limits\.maxStreams.*must be at least 2/);
    await writeConfig(prepared.configPath, prepared.config);
    process.kill(gateway.pid, 'SIGHUP');
    await gateway.logged(() => gateway.log.filter(({ msg }) => msg === 'config reloaded').length === 2);
  });

  it('replaces a worker that is killed under load, and no paid call is lost', async () => {
    const proofs = await Promise.all(Array.from({ length: 12 }, proof));
    const [victim = 0] = childrenOfPid(gateway.pid);
    const before = facilitator.calls.filter(({ path }) => path === '/settle').length;
    // As a buyer does whose connection breaks: the same proof again until it is answered.
    const buy = async (paid: string): Promise<number> => {
      for (;;) {
        const call = invoke('market_report', INPUT, { 'payment-signature': paid });
        const status = await call.then((answer) => answer.status).catch(() => undefined);
        if (status !== undefined && status < 500) return status;
        await delay(POLL_MS);
      }
    };
    const bought = proofs.map(buy);
    await until(() => facilitator.calls.filter(({ path }) => path === '/settle').length > before);
    process.kill(victim, 'SIGKILL');
    assert.deepEqual(
      await Promise.all(bought),
      proofs.map(() => 200),
    );
    await gateway.logged(({ msg, pid }) => msg === 'a worker ended' && pid === victim);
    await gateway.logged(({ msg }) => msg === 'another worker serves in its place');
    assert.equal(childrenOfPid(gateway.pid).length, WORKERS);
    assert.ok(!childrenOfPid(gateway.pid).includes(victim));
  });

  it('breaks the connection that a killed worker had been handed and had not taken', async () => {
    const [victim = 0] = childrenOfPid(gateway.pid);
    process.kill(victim, 'SIGSTOP');
    // In turn: one of these is handed to the worker that stands still.
    const calls = Array.from({ length: WORKERS }, () =>
      invoke('free_greeting').then(
        ({ status }) => status,
        () => 'broken',
      ),
    );
    assert.equal(await Promise.race(calls), 200);
    process.kill(victim, 'SIGKILL');
    assert.deepEqual(new Set(await Promise.all(calls)), new Set([200, 'broken']));
    await until(() => !childrenOfPid(gateway.pid).includes(victim) && childrenOfPid(gateway.pid).length === WORKERS);
  });

  it('ends with the cause in its log when workers end one after another, and the others finish their calls', async () => {
    // Enough for both: probes take turns as well.
    const held = Array.from({ length: 6 }, () =>
      invoke('free_held').then(
        ({ status }) => status,
        () => 0,
      ),
    );
    await until(() => backend.requests.filter(({ url }) => url.startsWith('/held')).length === held.length);
    const deaths = (): number => gateway.log.filter(({ msg }) => msg === 'a worker ended').length;
    for (let death = deaths(); death <= MOST_DEATHS; death += 1) {
      await until(() => childrenOfPid(gateway.pid).length === WORKERS);
      process.kill(childrenOfPid(gateway.pid).at(-1) ?? 0, 'SIGKILL');
      await gateway.logged(() => deaths() > death);
    }
    const { err } = await gateway.logged(({ level }) => level === FATAL);
    backend.release();
    assert.ok((await Promise.all(held)).includes(200), 'those of the worker that was left');
    assert.deepEqual(await gateway.ended, { code: 1, signal: null });
    assert.match(JSON.stringify(err), /6 workers ended within 60 s/);
    backend.hold();
    backend.forget();
    await start();
  });

  it('drains both at /drain, and both end at SIGTERM', async () => {
    const held = [invoke('free_held'), invoke('free_held')];
    await until(() => backend.requests.filter(({ url }) => url.startsWith('/held')).length === 2);
    const drained = askHook(prepared.managementUrl, '/drain');
    await until(async () => (await fetch(`${prepared.managementUrl}/ready`)).status === 503);
    backend.release();
    assert.deepEqual(await Promise.all(held.map(async (call) => (await call).status)), [200, 200]);
    assert.equal((await drained).status, 200);
    const children = childrenOfPid(gateway.pid);
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null });
    assert.ok(children.every((pid) => !isThere(pid)));
  });

  it('leaves no worker behind when the primary is killed', async () => {
    await start();
    const children = childrenOfPid(gateway.pid);
    await gateway.kill();
    await until(() => children.every((pid) => !isThere(pid)));
  });
});

function isThere(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
