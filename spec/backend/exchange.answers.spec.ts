import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { CAP_BYTES, ROWS, TIMEOUT_MS } from './answers.ts';
import { call, withMerchant } from './call.ts';

describe('what the merchant may answer', () => {
  for (const { rule, merchant, expect } of ROWS) {
    it(rule, async () => {
      const script = typeof merchant === 'string' ? (socket: Socket) => socket.write(merchant) : merchant;
      await withMerchant(script, async (hop, backend) => {
        const startedAt = performance.now();
        const got = await call(hop, undefined, { timeoutMs: TIMEOUT_MS, maxResponseBytes: CAP_BYTES });
        const tookMs = performance.now() - startedAt;
        if ('reason' in expect) {
          assert.deepEqual(got, { kind: 'failed', ...expect, requestWritten: true });
          assert.equal(tookMs >= TIMEOUT_MS - 5, expect.reason === 'timeout', `took ${tookMs} ms`);
        } else {
          assert.ok(got.kind === 'answer', JSON.stringify(got));
          assert.deepEqual(
            { status: got.status, body: got.body.toString() },
            { status: expect.status, body: expect.body },
          );
        }
        const kept = 'socket' in expect && expect.socket === 'kept';
        if (!kept) await backend.settledTo(0);
        assert.equal(backend.open(), kept ? 1 : 0);
        assert.equal(backend.requests.length, 1, 'the request went out once');
        assert.equal(hop.inFlight(), 0);
      });
    });
  }
});
