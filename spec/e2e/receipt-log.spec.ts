import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { openShell } from '../cli/shell.ts';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { NO_CHAIN } from '../support/config.ts';
import { type GatewayProcess, type PreparedGateway, prepareGateway } from '../support/gateway-process.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

const INPUT = { city: 'Zurich' };
const BUYERS = 6;
const KILLS = 2;
/** Sales before a gateway is killed. */
const SALES = 25;
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const KEY = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

describe('the log of receipts of gateways that are killed', { timeout: 180_000 }, () => {
  const ends = new AsyncDisposableStack();
  const shell = openShell(ends);
  let folder: string;
  let redis: TestRedis;
  let backend: SampleBackend;
  let facilitator: HostileFacilitator;
  let buyer: Buyer;

  before(async () => {
    folder = await temporaryDirectory(ends, 'acg-receipt-log-');
    redis = ends.adopt(await startRedis(), (server) => server.stop());
    backend = ends.adopt(await startSampleBackend({ port: 0 }), (server) => server.stop());
    facilitator = ends.adopt(await startHostileFacilitator('eip155:31337'), (server) => server.stop());
    buyer = await createBuyer({ mint: async () => undefined, balanceOf: async () => 0n } as never, 0n);
  });
  after(() => ends.disposeAsync());

  const prepare = (storage: Parameters<typeof prepareGateway>[1]['storage'], server: object = {}) =>
    prepareGateway(folder, {
      backendUrl: backend.url,
      chain: NO_CHAIN,
      storage,
      facilitator: { mode: 'remote', url: facilitator.url },
      overrides: { signing: { key: KEY }, server, payments: { x402: { rpcUrl: undefined } } },
    });
  const start = async (prepared: PreparedGateway): Promise<GatewayProcess> => {
    const gateway = await prepared.start();
    ends.defer(async () => void (await gateway.kill()));
    return gateway;
  };
  const invoke = (gateway: GatewayProcess, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(`${gateway.baseUrl}/api/resources/market_report/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(INPUT),
    });
  const buy = async (gateway: GatewayProcess): Promise<number> => {
    const quote = (await (await invoke(gateway)).json()) as { payment: { envelope: unknown } };
    return (await invoke(gateway, { 'payment-signature': await buyer.pay(quote.payment.envelope) })).status;
  };
  const verify = async ({ configPath }: PreparedGateway, ...more: readonly string[]) => {
    const words = ['receipts', '--verify', '--config', basename(configPath), ...more];
    const { code, text, errors } = await shell.run(folder, words);
    assert.equal(code, 0, `${text}${errors}`);
    return { text, errors };
  };
  /** Kills a gateway while buyers buy. */
  const sellUntilKilled = async (gateway: GatewayProcess, meanwhile: () => Promise<unknown>): Promise<void> => {
    let sold = 0;
    const enough = Promise.withResolvers<void>();
    const buyers = Array.from({ length: BUYERS }, async () => {
      for (;;)
        try {
          assert.equal(await buy(gateway), 200);
          sold += 1;
          if (sold === SALES) enough.resolve();
        } catch (error) {
          if (error instanceof assert.AssertionError) enough.reject(error);
          return;
        }
    });
    await enough.promise;
    await meanwhile();
    await gateway.kill();
    await Promise.all(buyers);
  };

  it('has every receipt that is there, and a copy of a checkpoint still fits, over SQLite', async () => {
    const prepared = await prepare(undefined);
    for (let kill = 0; kill < KILLS; kill += 1) {
      await sellUntilKilled(await start(prepared), async () => undefined);
      await verify(prepared);
    }
    const gateway = await start(prepared);
    assert.equal(await buy(gateway), 200);
    await gateway.stop();
    const { text } = await verify(prepared);
    await writeFile(join(folder, 'copy.jws'), text);
    await sellUntilKilled(await start(prepared), async () => undefined);
    const { errors } = await verify(prepared, '--checkpoint', 'copy.jws');
    assert.match(errors, /^nothing was changed: \d+ versions in \d+ checkpoints/);
  });

  it('has every receipt over Redis, and is verified while they sell', async () => {
    const prepared = await prepare({ redis: { url: redis.url } });
    for (let kill = 0; kill < KILLS; kill += 1) {
      await sellUntilKilled(await start(prepared), () => verify(prepared));
      await verify(prepared);
    }
  });

  it('shows what another hand changed', async () => {
    const prepared = await prepare({ redis: { url: redis.url } });
    const client = new Redis({ path: redis.socketPath });
    try {
      const [key = ''] = await client.keys('*:rcpt');
      const [id = ''] = await client.hkeys(key);
      const text = (await client.hget(key, id)) ?? '';
      await client.hset(key, id, text.replace('"durationMs":', '"durationMs":1'));
      const words = ['receipts', '--verify', '--config', basename(prepared.configPath)];
      const { code, lines, errors } = await shell.run(folder, words);
      assert.deepEqual([code, lines], [1, [`${id} was changed: no gateway wrote its present text`]]);
      assert.match(errors, /^1 findings: /);
      const { findings } = JSON.parse((await shell.run(folder, [...words, '--json'])).text);
      assert.deepEqual(findings, [{ about: id, what: 'was changed: no gateway wrote its present text' }]);
    } finally {
      client.disconnect();
    }
  });
});
