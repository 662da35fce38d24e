import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { ConfigObject } from '../../support/config.ts';
import { prepareGateway } from '../../support/gateway-process.ts';
import { answerJson, serveHttp } from '../../support/http-server.ts';
import { type CheckedWorld, openCheckedWorld } from './checked-world.ts';

const ends = new AsyncDisposableStack();
let world: CheckedWorld;
before(async () => {
  world = await openCheckedWorld(ends);
  const { start } = await prepareGateway(world.folder, world.parts);
  ends.adopt(await start(), async ({ stop }) => void (await stop()));
});
after(() => ends.disposeAsync());

describe('the check of the gateway that runs here', () => {
  const payTo = privateKeyToAddress(generatePrivateKey());
  const price = { market_report: { pricing: { amount: '0.02' } } };
  const cases: readonly (readonly [what: string, changes: ConfigObject, says: RegExp])[] = [
    ['another payee', { payments: { x402: { payTo } } }, new RegExp(`its payments.x402.payTo is 0x.*, not ${payTo}`)],
    ['another price', { resources: price }, /it sells market_report for 0\.01 TUSD, not 0\.02 TUSD/],
    ['a resource that is gone', { resources: { cities: undefined } }, /it sells cities; restart it/],
    ['another merchant', { merchant: { id: 'other-shop' } }, /its merchant\.id is market-shop, not other-shop/],
  ];
  for (const [what, changes, says] of cases)
    it(`${what} shows in it alone, as a warning`, async () => {
      const healthy = (await world.examined()).statuses;
      assert.equal(healthy['running gateway'], 'PASS');
      const { statuses, text } = await world.examined(changes);
      assert.deepEqual(statuses, { ...healthy, 'running gateway': 'WARN' });
      assert.match(text, says);
      assert.match(text, /runs another configuration: .*; restart it with this configuration/);
    });

  it('is skipped where nothing listens, and fails where something else does', async () => {
    const healthy = (await world.examined()).statuses;
    const free = await world.examined({ server: { port: 1 } });
    assert.deepEqual(free.statuses, { ...healthy, 'running gateway': 'SKIP' });
    const stranger = ends.adopt(
      await serveHttp(({ response }) => answerJson(response, 200, { merchant: 'none' })),
      ({ stop }) => stop(),
    );
    const taken = await world.examined({ server: { port: Number(new URL(stranger.url).port) } });
    assert.deepEqual(taken.statuses, { ...healthy, 'running gateway': 'FAIL' });
    assert.match(taken.text, /is taken by something that is no gateway; end it/);
  });

  it('asks for the host that the gateway serves', async () => {
    await using own = new AsyncDisposableStack();
    const { overrides = {}, ports: _ports, ...parts } = world.parts;
    const server = { allowedHosts: ['shop.example'] };
    const { start, config } = await prepareGateway(world.folder, { ...parts, overrides: { ...overrides, server } });
    own.adopt(await start(), async ({ stop }) => void (await stop()));
    const { statuses } = await world.examined({ server: config['server'] });
    assert.equal(statuses['running gateway'], 'PASS');
  });
});
