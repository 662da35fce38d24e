import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { exchange, head } from '../server/http/raw.ts';
import { openPassthroughTestbed, startMerchant } from './testbed.ts';

const PATIENCE = { timeout: 60_000 };

describe('running out of room', () => {
  it('refuses with 503 and Retry-After what waited too long, and lets the first ones finish', PATIENCE, async () => {
    const held: ServerResponse[] = [];
    const merchant = await startMerchant((_req, res) => void held.push(res));
    const testbed = await openPassthroughTestbed({
      backendUrl: merchant.url,
      overrides: { limits: { maxPassthrough: 1 } },
    });
    try {
      const first = fetch(`${testbed.url}/first`);
      while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
      const second = await fetch(`${testbed.url}/second`);
      assert.equal(second.status, 503);
      assert.equal(second.headers.get('retry-after'), '1');
      held[0]?.end('done');
      assert.equal(await (await first).text(), 'done');
      assert.equal(held.length, 1);
    } finally {
      await testbed.close();
      merchant.close();
    }
  });

  it('finishes running downloads in the drain, with the end of their connection', PATIENCE, async () => {
    const held: ServerResponse[] = [];
    const merchant = await startMerchant((_req, res) => void held.push(res));
    const testbed = await openPassthroughTestbed({ backendUrl: merchant.url });
    try {
      const download = exchange(testbed.url, [head(['GET /file HTTP/1.1', 'Host: a'])]);
      while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
      let drained = false;
      const drain = testbed.gateway.drain(30_000).then(() => {
        drained = true;
      });
      held[0]?.write('half');
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.equal(drained, false);
      held[0]?.end('whole');
      assert.match(await download, /connection: close[\s\S]*half[\s\S]*whole/i);
      await drain;
    } finally {
      await testbed.close();
      merchant.close();
    }
  });

  it('ends what outlives the drain: 502 where no answer has begun, else the connection breaks', PATIENCE, async () => {
    const held: ServerResponse[] = [];
    const merchant = await startMerchant((_req, res) => void held.push(res));
    const testbed = await openPassthroughTestbed({ backendUrl: merchant.url });
    try {
      const begun = exchange(testbed.url, [head(['GET /begun HTTP/1.1', 'Host: a'])]);
      while (held.length < 1) await new Promise((resolve) => setImmediate(resolve));
      held[0]?.write('half');
      const silent = fetch(`${testbed.url}/unanswered`);
      while (held.length < 2) await new Promise((resolve) => setImmediate(resolve));
      await testbed.gateway.drain(50);
      const { status } = await silent;
      assert.equal(status, 502);
      assert.match(await begun, /half/);
      assert.doesNotMatch(await begun, /\r\n0\r\n/, 'it does not look whole');
    } finally {
      await testbed.close();
      merchant.close();
    }
  });
});
