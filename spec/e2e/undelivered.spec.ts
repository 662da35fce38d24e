import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { backendIdempotencyKey } from '../../src/payments/settlement/terms.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { eventsUntil, eventually, metadataOf, receiptWhen } from '../support/records.ts';
import { seenHangUp } from '../support/seen-hang-up.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { bring, failure, replayed } from './bring.ts';
import { found } from './proofs.ts';

/** The receipts that a merchant has to check, newest first. */
async function openReceipts({ gateway }: Testbed): Promise<readonly Receipt[]> {
  const answer = await gateway.operator('/api/receipts?delivered=false&limit=500');
  assert.equal(answer.status, 200);
  return ((await answer.json()) as { receipts: Receipt[] }).receipts;
}

describe('a buyer that leaves while the merchant works', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  /**
   * Sends the call, leaves once the backend has it (or `until` resolves), and lets the backend
   * finish.
   */
  const leave = async (
    id: string,
    input: unknown,
    proof: string,
    requestId: string,
    key?: string,
    until: (call: Promise<Response>) => Promise<unknown> = () => Promise.resolve(),
  ): Promise<Receipt> => {
    const { gateway, backend } = testbed;
    backend.hold();
    backend.forget();
    const arrived = backend.nextRequest('/');
    const leaving = new AbortController();
    const headers = {
      'content-type': 'application/json',
      'payment-signature': proof,
      'x-request-id': requestId,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    };
    const body = JSON.stringify(input);
    const url = `${gateway.url}/api/resources/${id}/invoke`;
    const call = fetch(url, { method: 'POST', headers, body, signal: leaving.signal });
    const gone = call.catch(() => undefined);
    await arrived;
    await until(call);
    leaving.abort();
    await gone;
    await seenHangUp(gateway.url);
    backend.release();
    return eventually(async () => {
      const receipt = await receiptWhen(gateway, requestId, false);
      return receipt.metadata?.backendErrorCode === 'client_gone' ? receipt : undefined;
    }, 'the delivery to be given up');
  };

  for (const [id, method] of [
    ['held', 'GET'],
    ['held_post', 'POST'],
  ] as const)
    it(`${method}: collects later what the merchant answered, without a second execution`, async () => {
      const proof = await testbed.proof(id);
      const income = await testbed.income();
      const requestId = `left-${id}`;
      const receipt = await leave(id, {}, proof, requestId);
      assert.equal(receipt.backendStatus, 200);
      const left = await eventsUntil(testbed.gateway, requestId, 'backend.called');
      assert.deepEqual(left.at(-1)?.data, { status: 200, clientGone: true });
      assert.ok((await openReceipts(testbed)).some((open) => open.id === receipt.id));

      const collected = await bring(testbed.gateway, id, {}, { proof });
      assert.deepEqual([collected.status, collected.bytes.toString()], [200, '{"held":true}']);
      assert.equal(collected.headers.get('idempotent-replayed'), null, 'delivered for the first time');
      assert.deepEqual([collected.payment?.success, collected.payment?.receiptId], [true, receipt.id]);
      const key = backendIdempotencyKey(receipt.payment?.replayKey ?? '');
      assert.equal(testbed.backend.executions(key), 1);
      assert.equal((await testbed.income()) - income, 1_000n);

      const closed = await receiptWhen(testbed.gateway, collected.requestId, true);
      assert.deepEqual([closed.id, metadataOf(closed)], [receipt.id, { resumedFrom: requestId }]);
      assert.ok(!(await openReceipts(testbed)).some((open) => open.id === receipt.id), 'off the list');
      const events = await eventsUntil(testbed.gateway, collected.requestId, 'resource.delivered');
      assert.deepEqual(
        events.map(({ type }) => type),
        ['resource.requested', 'resource.delivered'],
      );
      replayed(await bring(testbed.gateway, id, {}, { proof: found(proof) }), 'delivered');
    });

  it('too large to keep: the merchant is asked again, under the same key, and it is paid once', async () => {
    const proof = await testbed.proof('archive');
    // Its body is left unread: 5 MiB do not fit into the buffers on the way.
    const income = await testbed.income();
    const receipt = await leave('archive', {}, proof, 'left-archive', undefined, (call) => call);
    const key = backendIdempotencyKey(receipt.payment?.replayKey ?? '');
    const collected = await bring(testbed.gateway, 'archive', {}, { proof });
    assert.deepEqual([collected.status, collected.bytes.length], [200, 5 * 1024 * 1024]);
    assert.ok(testbed.backend.executions(key) >= 2);
    assert.equal((await testbed.income()) - income, 20_000n);
  });
});

describe('a merchant that fails after the payment', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  const DAY_MS = 24 * 60 * 60 * 1_000;

  it('a method that may be repeated: retryable, with the time until which it can be collected', async () => {
    const input = { failures: 1 };
    const proof = await testbed.proof('flaky', input);
    const body = failure(await bring(testbed.gateway, 'flaky', input, { proof }), 502, 'BACKEND_ERROR');
    assert.deepEqual([body.retryable, body.details.state], [true, 'undelivered']);
    const left = Date.parse(body.details.retryUntil ?? '') - Date.now();
    assert.ok(left > DAY_MS - 60_000 && left <= DAY_MS, `${left} ms`);
    assert.equal((await bring(testbed.gateway, 'flaky', input, { proof })).status, 200);
  });

  it('a method that may not be repeated: not retryable, on the list of refunds with payer, amount and transaction', async () => {
    const proof = await testbed.proof('failing_post', { status: 500 });
    const answer = await bring(testbed.gateway, 'failing_post', { status: 500 }, { proof });
    const body = failure(answer, 502, 'BACKEND_ERROR');
    assert.deepEqual([body.retryable, body.details.retryUntil], [false, undefined]);
    assert.equal(answer.payment?.success, true, 'the money has moved');
    replayed(await bring(testbed.gateway, 'failing_post', { status: 500 }, { proof }), 'undelivered');
    const [open] = await openReceipts(testbed);
    assert.deepEqual(
      [open?.requestId, open?.payment?.payer, open?.payment?.amount, open?.payment?.externalReference],
      [answer.requestId, testbed.buyer.address.toLowerCase(), '0.001', answer.payment?.transaction],
    );
    assert.deepEqual(
      [open?.delivered, open && metadataOf(open)],
      [false, { backendErrorCode: 'backend_status_500', backendPath: '/fail/{status}' }],
    );
  });
});
