import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { backendIdempotencyKey } from '../../src/payments/settlement/terms.ts';
import { openGateway, type TestGateway, type TestGatewayParts } from '../support/gateway.ts';
import { eventually, receiptWhen } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { openTestbed, proofFor as signedProof, type Testbed } from '../support/testbed.ts';
import { bring } from './bring.ts';
import { found } from './proofs.ts';

type Call = { readonly id: string; readonly input: object; readonly proof?: string; readonly requestId?: string };
type Post = readonly [path: string, body: object, headers?: Readonly<Record<string, string>>];

/** One call as each channel takes it. */
const CHANNELS: Readonly<Record<'http' | 'mcp' | 'a2a', (call: Call) => Post>> = {
  http: ({ id, input }) => [`/api/resources/${id}/invoke`, input],
  mcp: ({ id, input }) => [
    '/mcp',
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: id, arguments: input } },
  ],
  a2a: ({ id, input }) => {
    const parts = [{ data: { resource: id, input }, mediaType: 'application/json' }];
    const message = { messageId: 'one', role: 'ROLE_USER', parts };
    return ['/a2a', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }, { 'a2a-version': '1.0' }];
  },
};
type Channel = keyof typeof CHANNELS;

/**
 * The status and text of the answer, without the ids and the time that each of them has of its own.
 */
async function answerTo(gateway: TestGateway, channel: Channel, call: Call): Promise<string> {
  const [path, body, headers = {}] = CHANNELS[channel](call);
  const answer = await fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(call.proof === undefined ? {} : { 'payment-signature': call.proof }),
      'x-request-id': call.requestId ?? 'asked-again',
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const text = (await answer.text())
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'drawn')
    .replaceAll(/"timestamp":"[^"]*"/g, '"timestamp":"now"');
  return `${answer.status} ${text}`;
}

const STRICTER = {
  type: 'object',
  properties: { failures: { type: 'integer', minimum: 100 } },
  required: ['failures'],
  additionalProperties: false,
};
/** What may become of `flaky` after it was bought, and what a stranger gets then. */
const CHANGES: Readonly<Record<string, { readonly to: unknown; readonly refusal?: RegExp }>> = {
  'was removed': { to: undefined, refusal: /RESOURCE_NOT_FOUND|no such tool/ },
  'became stricter': { to: { inputSchema: STRICTER }, refusal: /INPUT_INVALID/ },
  'became dearer': { to: { pricing: { amount: '0.5' } } },
};
const PROTOCOLS = { http: { enabled: true }, mcp: { enabled: true }, a2a: { enabled: true } };
/** Of `flaky` and `noisy`. */
const UNITS = 1_000n;

const redis = await startRedis();
const home = mkdtempSync(join(tmpdir(), 'acg-collect-'));
after(async () => {
  await redis.stop();
  rmSync(home, { recursive: true, force: true });
});

for (const [store, storage] of Object.entries({
  SQLite: { sqlite: { path: join(home, 'payments.db') } },
  Redis: { redis: { url: redis.url } },
}))
  describe(`what was bought of a resource that changed since is collected, on ${store}`, () => {
    let testbed: Testbed;
    let gateway: TestGateway;
    before(async () => {
      testbed = await openTestbed({ storage, overrides: { protocols: PROTOCOLS } });
      gateway = testbed.gateway;
    });
    afterEach(() => reopen({}));
    after(async () => {
      await gateway?.close();
      await Promise.all([testbed?.chain.stop(), testbed?.backend.stop()]);
    });

    /** The same gateway with other resources, as after a change of its file. */
    const reopen = async (resources: object): Promise<void> => {
      await gateway.close();
      const { chain, backend } = testbed;
      const parts: TestGatewayParts = {
        ...{ chain, storage, backendUrl: backend.url, facilitator: { mode: 'local' } },
        payTo: testbed.gateway.config.x402?.payTo ?? '',
        overrides: { protocols: PROTOCOLS, resources },
      };
      gateway = await openGateway(parts);
    };
    const proofFor = (id: string, input: object): Promise<string> => signedProof(gateway, testbed.buyer, id, input);
    /** The record is undelivered and its lease has ended. */
    const undelivered = (requestId: string) => receiptWhen(gateway, requestId, false);

    for (const channel of Object.keys(CHANNELS) as Channel[])
      for (const [what, { to, refusal }] of Object.entries(CHANGES))
        it(`${channel}, it ${what}: the same proof and token collect, once, and no other call learns of it`, async () => {
          const input = { failures: 2 };
          const call: Call = { id: 'flaky', input, proof: await proofFor('flaky', input) };
          const stranger = await proofFor('noisy', {});
          const income = await testbed.income();
          const requestId = `first-${randomUUID()}`;
          assert.match(await answerTo(gateway, channel, { ...call, requestId }), /BACKEND_ERROR/);
          assert.equal((await testbed.income()) - income, UNITS);
          const receipt = await undelivered(requestId);
          await reopen({ flaky: to });
          if (refusal !== undefined) {
            const { proof: own = '' } = call;
            const plain = await answerTo(gateway, channel, { id: 'flaky', input });
            assert.match(plain, refusal);
            for (const proof of [found(own), stranger, 'bm9uZQ=='])
              assert.equal(await answerTo(gateway, channel, { ...call, proof }), plain);
            const other = { failures: 3 };
            const misfit = await answerTo(gateway, channel, { id: 'flaky', input: other });
            assert.equal(await answerTo(gateway, channel, { ...call, input: other }), misfit);
          }
          // The merchant fails twice in all; the second time may be the reconciler's.
          const collected = await eventually(async () => {
            const answer = await answerTo(gateway, channel, call);
            return /BACKEND_ERROR|in_flight/.test(answer) ? undefined : answer;
          }, 'the answer');
          assert.doesNotMatch(collected, /"code"/);
          assert.match(collected, /^200 /);
          const key = backendIdempotencyKey(receipt.payment?.replayKey ?? '');
          const executed = testbed.backend.executions(key);
          assert.equal(executed, 3);
          assert.match(await answerTo(gateway, channel, call), /^200 /, 'the kept answer');
          assert.equal(testbed.backend.executions(key), executed);
          assert.equal((await testbed.income()) - income, UNITS, 'no second settlement');
        });

    it('removed: a request that may be repeated is made before its buyer comes back, and its answer is kept', async () => {
      const input = { failures: 1 };
      const proof = await proofFor('flaky', input);
      const requestId = `first-${randomUUID()}`;
      await answerTo(gateway, 'http', { id: 'flaky', input, proof, requestId });
      const receipt = await undelivered(requestId);
      await reopen({ flaky: undefined });
      const { replayKey = '' } = receipt.payment ?? {};
      await eventually(async () => {
        const record = await gateway.store.ledger.read(replayKey);
        return record?.reason === 'answer_kept' ? record : undefined;
      }, 'the answer to be kept');
      const answer = await bring(gateway, 'flaky', input, { proof });
      assert.deepEqual([answer.status, answer.payment?.receiptId], [200, receipt.id]);
      assert.equal(testbed.backend.executions(backendIdempotencyKey(replayKey)), 2);
    });
  });
