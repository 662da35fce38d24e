import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';

interface Discovery {
  readonly merchant: { readonly id: string };
  readonly protocols: Record<string, { readonly enabled: boolean }>;
  readonly adapters: readonly { readonly name: string; readonly health: { readonly status: string } }[];
  readonly store: { readonly name: string };
  readonly payments: { readonly x402: { readonly mode: string; readonly payTo: string; readonly facilitator: object } };
}

describe('what is public', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  it('discovery states what is mounted, its state, and the payee; not how to reach the chain or the backend', async () => {
    const answer = await fetch(`${testbed.gateway.url}/.well-known/agent-commerce`);
    const text = await answer.text();
    const document = JSON.parse(text) as Discovery;
    assert.deepEqual(
      Object.entries(document.protocols).map(([name, { enabled }]) => [name, enabled]),
      [
        ['http', true],
        ['mcp', false],
        ['a2a', false],
        ['acp', false],
      ],
    );
    assert.deepEqual(
      document.adapters.map(({ name, health }) => [name, health.status]),
      [['http', 'pass']],
    );
    const { mode, payTo, facilitator } = document.payments.x402;
    assert.deepEqual([mode, payTo, facilitator], ['local', testbed.gateway.config.x402?.payTo, { mode: 'local' }]);
    for (const withheld of [testbed.chain.rpcUrl, testbed.backend.url, testbed.chain.relayerKey])
      assert.ok(!text.includes(withheld.replace('http://', '')));
  });

  it('the listing names prices and only what is mounted', async () => {
    const answer = await fetch(`${testbed.gateway.url}/api/resources`);
    const { resources } = (await answer.json()) as {
      resources: { id: string; exposedVia: string[]; pricing: object }[];
    };
    const report = resources.find(({ id }) => id === 'market_report');
    assert.deepEqual(report?.pricing, { type: 'fixed', amount: '0.01', currency: 'TUSD' });
    assert.deepEqual(report?.exposedVia, ['http']);
  });

  it('the operator pages through events and receipts, newest first, without a gap', async () => {
    for (let n = 0; n < 5; n += 1) {
      const answer = await testbed.gateway.invoke('cities', {}, { 'x-request-id': `page-${n}` });
      await answer.arrayBuffer();
      // Each in a millisecond of its own: receipts of one are in no order.
      for (const at = Date.now(); Date.now() === at; );
    }
    const list = async (path: string): Promise<readonly { id: string; requestId: string }[]> => {
      const seen: { id: string; requestId: string }[] = [];
      let cursor = '';
      do {
        const answer = await testbed.gateway.operator(`${path}?limit=2&resourceId=cities${cursor}`);
        const page = (await answer.json()) as Record<string, unknown> & { nextCursor?: string };
        seen.push(...((page['events'] ?? page['receipts']) as typeof seen));
        cursor = page.nextCursor === undefined ? '' : `&cursor=${page.nextCursor}`;
      } while (cursor !== '');
      return seen;
    };
    const receipts = await eventually(async () => {
      const all = await list('/api/receipts');
      return all.length === 5 ? all : undefined;
    }, 'five receipts');
    assert.deepEqual(
      receipts.map(({ requestId }) => requestId),
      ['page-4', 'page-3', 'page-2', 'page-1', 'page-0'],
    );
    const events = await eventually(async () => {
      const all = await list('/api/events');
      return all.length === 15 ? all : undefined;
    }, 'three events for each of five calls');
    assert.equal(new Set(events.map(({ id }) => id)).size, 15);
  });
});

describe('readiness', () => {
  it('follows the store: 503 while Redis is away, 200 again when it is back; /health stays 200', async () => {
    const redis = await startRedis();
    const testbed = await openTestbed({ storage: { redis: { url: redis.url } } });
    const ready = async (): Promise<{ status: number; store: { status: string; detail?: string } }> => {
      const at = performance.now();
      const answer = await fetch(`${testbed.gateway.managementUrl}/ready`);
      const body = (await answer.json()) as { store: { status: string; detail?: string } };
      assert.ok(performance.now() - at < 1_000, 'a probe is answered from memory');
      return { status: answer.status, store: body.store };
    };
    try {
      await eventually(async () => ((await ready()).status === 200 ? true : undefined), 'ready');
      await redis.kill();
      const away = await eventually(async () => {
        const now = await ready();
        return now.store.status === 'pass' ? undefined : now;
      }, 'the first failed look');
      assert.deepEqual([away.status, away.store.status, away.store.detail], [200, 'warn', 'store-unreachable']);
      assert.equal((await fetch(`${testbed.gateway.url}/health`)).status, 200);
      await redis.restart();
      await eventually(async () => ((await ready()).store.status === 'pass' ? true : undefined), 'ready again');
    } finally {
      await testbed.close();
      await redis.stop();
    }
  });
});
