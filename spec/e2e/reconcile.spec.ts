import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { backendIdempotencyKey } from '../../src/payments/settlement/terms.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { VERSION_LENGTH } from '../../src/store/port/commit.ts';
import { type FacilitatorCall, relayTo, type Script } from '../support/hostile-facilitator.ts';
import { eventsUntil, eventually, metadataOf, receiptWhen } from '../support/records.ts';
import { openScriptedTestbed, openTestbed, type ScriptedTestbed, type Testbed } from '../support/testbed.ts';
import { bring, failure, replayed } from './bring.ts';
import { decode } from './proofs.ts';

type Content = Readonly<Record<string, unknown>>;

/** Changes a payment in the file of a store as another process would: under another version. */
function changePaymentInFile(path: string, payId: string, change: Content & { readonly dueAt: number }): boolean {
  const db = new DatabaseSync(path);
  try {
    const changed = db
      .prepare('UPDATE documents SET version = ?, value = json_patch(value, ?) WHERE key = ?')
      .run(randomBytes(VERSION_LENGTH / 2).toString('hex'), JSON.stringify(change), `pay:${payId}`).changes;
    db.prepare("UPDATE entries SET score = ? WHERE list = 'open' AND member = ?").run(change.dueAt, payId);
    return changed === 1;
  } finally {
    db.close();
  }
}

const INPUT = { city: 'Berlin' };

describe('a settlement of which the end is unknown', () => {
  let world: ScriptedTestbed;
  let testbed: ScriptedTestbed['testbed'];
  let hostile: ScriptedTestbed['hostile'];
  let official: ScriptedTestbed['official'];
  before(async () => {
    world = await openScriptedTestbed();
    ({ testbed: testbed, hostile, official } = world);
  });
  after(() => world?.close());

  it('and was paid: is found without its buyer, fetched from the backend once, and kept', async () => {
    const sent: FacilitatorCall[] = [];
    const settle: Script = (call) => {
      sent.push(call);
      return { kind: 'reset' };
    };
    hostile.script({ verify: relayTo(official.url), settle });
    const income = await testbed.income();
    const proof = await testbed.proof('market_report', INPUT);
    const first = await bring(testbed.gateway, 'market_report', INPUT, { proof });
    failure(first, 502, 'PAYMENT_SETTLEMENT_FAILED');
    // The facilitator had it all the time, and broadcasts it late.
    const [late] = sent;
    assert.ok(late !== undefined);
    await relayTo(official.url)(late);
    const events = await eventsUntil(testbed.gateway, first.requestId, 'backend.called');
    assert.deepEqual(
      events.map(({ type }) => type),
      ['resource.requested', 'payment.verified', 'payment.settled', 'backend.called'],
    );
    const receipt = await receiptWhen(testbed.gateway, first.requestId, false);
    const collected = await bring(testbed.gateway, 'market_report', INPUT, { proof });
    assert.equal(collected.status, 200);
    assert.equal(JSON.parse(collected.bytes.toString()).city, 'Berlin');
    assert.equal(collected.payment?.transaction, receipt.payment?.externalReference);
    assert.equal(testbed.backend.executions(backendIdempotencyKey(receipt.payment?.replayKey ?? '')), 1);
    assert.equal((await testbed.income()) - income, 10_000n);
  });

  it('and was never paid: once the chain is past its validity, 402 with the first reason and a fresh challenge', async () => {
    hostile.script({ verify: relayTo(official.url), settle: () => ({ kind: 'reset' }) });
    const income = await testbed.income();
    const proof = await testbed.proof('market_report', INPUT);
    const first = await bring(testbed.gateway, 'market_report', INPUT, { proof });
    failure(first, 502, 'PAYMENT_SETTLEMENT_FAILED');
    const validBefore = Number(decode(proof).payload.authorization['validBefore']);
    await testbed.chain.request('evm_setNextBlockTimestamp', [validBefore + 1]);
    await testbed.chain.request('evm_mine', []);
    await eventsUntil(testbed.gateway, first.requestId, 'payment.rejected');
    const answer = await bring(testbed.gateway, 'market_report', INPUT, { proof });
    assert.equal(answer.status, 402, answer.bytes.toString());
    const body = JSON.parse(answer.bytes.toString()) as { error: { code: string; reason: string } };
    assert.equal(body.error.code, 'PAYMENT_SETTLEMENT_FAILED');
    assert.deepEqual([answer.payment?.success, answer.payment?.errorReason], [false, body.error.reason]);
    assert.equal(await testbed.income(), income);
  });
});

describe('a call that its merchant failed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-reconcile-'));
  const path = join(folder, 'gateway.db');
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ storage: { sqlite: { path } } });
  });
  after(async () => {
    await testbed.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const openReceipt = (requestId: string, metadata: object): Promise<Receipt> =>
    eventually(
      async () => {
        const answer = await testbed.gateway.operator('/api/receipts?delivered=false');
        const { receipts } = (await answer.json()) as { receipts: Receipt[] };
        const receipt = receipts.find((one) => one.requestId === requestId);
        const shown = receipt && metadataOf(receipt);
        return JSON.stringify(shown) === JSON.stringify(metadata) ? receipt : undefined;
      },
      `a receipt with ${JSON.stringify(metadata)}`,
    );

  it('and that may be repeated is fetched without its buyer and delivered when the buyer comes', async () => {
    const input = { failures: 1 };
    const proof = await testbed.proof('flaky', input);
    const first = await bring(testbed.gateway, 'flaky', input, { proof });
    failure(first, 502, 'BACKEND_ERROR');
    const receipt = await openReceipt(first.requestId, { answerKept: true });
    const key = backendIdempotencyKey(receipt.payment?.replayKey ?? '');
    assert.equal(testbed.backend.executions(key), 2);
    const collected = await bring(testbed.gateway, 'flaky', input, { proof });
    assert.deepEqual([collected.status, collected.bytes.toString()], [200, '{"delivered":true}']);
    assert.equal(testbed.backend.executions(key), 2);
  });

  it('and that is not collected is due for a refund after a day, and stays on the merchant’s list', async () => {
    const proof = await testbed.proof('failing_post', { status: 500 });
    const first = await bring(testbed.gateway, 'failing_post', { status: 500 }, { proof });
    failure(first, 502, 'BACKEND_ERROR');
    const { payment } = await openReceipt(first.requestId, {
      backendErrorCode: 'backend_status_500',
      backendPath: '/fail/{status}',
    });
    dayPasses(path, payment?.replayKey ?? '');
    const due = await openReceipt(first.requestId, { refundDue: true });
    assert.deepEqual(
      [due.delivered, due.payment?.payer, due.payment?.amount, due.payment?.externalReference],
      [false, testbed.buyer.address.toLowerCase(), '0.001', first.payment?.transaction],
    );
    const body = replayed(await bring(testbed.gateway, 'failing_post', { status: 500 }, { proof }), 'refundDue');
    assert.equal(body.details.payment?.['externalReference'], first.payment?.transaction);
  });
});

/** Makes a payment a day older than it is: the one thing that no test can wait for. */
function dayPasses(path: string, payId: string): void {
  const dueAt = Date.now() - 1_000;
  assert.ok(changePaymentInFile(path, payId, { dueAt, settledAt: dueAt - 24 * 60 * 60 * 1_000 }));
}
