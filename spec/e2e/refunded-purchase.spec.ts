import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey } from 'viem/accounts';
import type { JsonObject } from '../../src/json/json.ts';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { receiptOf } from '../../src/payments/ledger/payment-receipt.ts';
import { fencingToken } from '../../src/payments/settlement/attempt.ts';
import { createChain } from '../../src/payments/x402/chain/chain.ts';
import { createRpc, type Rpc } from '../../src/payments/x402/chain/node.ts';
import { prepareKey, type SigningKey } from '../../src/payments/x402/evm/account.ts';
import { payRefund, type RefundOutcome } from '../../src/payments/x402/refund/pay.ts';
import { createRefundSender } from '../../src/payments/x402/refund/sender.ts';
import { keySigner } from '../../tools/refunds/signer.ts';
import { checkTogether, readKept } from '../../tools/verify-receipt/documents.ts';
import { keysOfDid, readSigned } from '../../tools/verify-receipt/signed.ts';
import { openSignedShop, type SignedShop } from '../../verification/signed/deliveries.ts';
import { eventually } from '../support/records.ts';
import { bring, failure } from './bring.ts';

const INPUT = { status: 500 };

describe('a purchase that the merchant sends back', () => {
  let payee: SigningKey;
  let shop: SignedShop;
  let rpc: Rpc;
  let proof: string;
  let bought: { readonly receiptId: string; readonly payId: string; readonly transaction: string };
  before(async () => {
    payee = await prepareKey(generatePrivateKey());
    shop = await openSignedShop({}, payee.address);
    rpc = createRpc(shop.chain.rpcUrl);
    await shop.chain.fundGas(payee.address);
    proof = await shop.proof('failing_post', INPUT);
    const answer = await bring(shop.gateway, 'failing_post', INPUT, { proof });
    failure(answer, 502, 'BACKEND_ERROR');
    const { receiptId = '', transaction = '' } = answer.payment ?? {};
    bought = { receiptId, transaction, payId: await becomesDue(shop, answer.requestId) };
  });
  after(async () => {
    await rpc?.close();
    await shop?.close();
  });

  /** What the gateway tells the buyer, with the signature verified and both halves compared. */
  const purchase = async (): Promise<{ readonly shown: JsonObject; readonly stated: JsonObject }> => {
    const headers = { 'payment-signature': proof };
    const answer = await fetch(`${shop.gateway.url}/api/purchases/${bought.receiptId}`, { headers });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    const { signed, ...said } = readKept(text);
    const [statement, ...others] = signed.map((one) => readSigned(one, keysOfDid(shop.did)));
    assert.ok(statement !== undefined && others.length === 0);
    assert.deepEqual([statement.kind, statement.verified], ['statement', true]);
    checkTogether([statement], said);
    assert.ok(!('answer' in statement.payload) && !('input' in statement.payload));
    const { transaction } = statement.payload['payment'] as JsonObject;
    assert.deepEqual([statement.payload['receiptId'], transaction], [bought.receiptId, bought.transaction]);
    return { shown: JSON.parse(text) as JsonObject, stated: statement.payload };
  };
  const sendBack = (gas: SigningKey): Promise<RefundOutcome> => {
    const { x402 } = shop.gateway.config;
    assert.ok(x402 !== undefined);
    const { ledger } = shop.gateway.store;
    const [signer, sender] = [keySigner(payee, x402), createRefundSender(rpc, x402, gas)];
    return payRefund({ ledger, chain: createChain(rpc), terms: x402, signer, sender }, bought.payId, {
      confirmed: false,
      now: false,
    });
  };

  it('is stated to its buyer as due, as being sent and as sent back', async () => {
    const due = await purchase();
    assert.deepEqual([due.shown['state'], due.stated['state']], ['refundDue', 'refundDue']);
    assert.ok(!('refund' in due.shown) && !('refund' in due.stated));

    const before = await shop.chain.balanceOf(shop.buyer.address);
    const poor = await prepareKey(generatePrivateKey());
    assert.equal((await sendBack(poor)).kind, 'pending', 'it has no gas');
    const sending = await purchase();
    assert.deepEqual([sending.shown['state'], sending.stated['state']], ['refunding', 'refunding']);
    const signed = sending.shown['refund'] as JsonObject;
    assert.equal(signed['status'], 'refunding');
    assert.deepEqual(sending.stated['refund'], { transaction: signed['transaction'] });
    assert.equal(await shop.chain.balanceOf(shop.buyer.address), before);

    const outcome = await sendBack(payee);
    assert.ok(outcome.kind === 'refunded', JSON.stringify(outcome));
    const { transaction } = outcome;
    assert.notEqual(transaction, signed['transaction']);
    const sent = await purchase();
    assert.deepEqual([sent.shown['state'], sent.stated['state']], ['refunded', 'refunded']);
    assert.partialDeepStrictEqual(sent.shown['refund'], { status: 'refunded', transaction });
    assert.deepEqual(sent.stated['refund'], { transaction });
    const { units } = (await shop.gateway.store.ledger.read(bought.payId)) ?? assert.fail();
    assert.equal(await shop.chain.balanceOf(shop.buyer.address), before + BigInt(units));
  });
});

/** Ends the day in which its buyer could collect; resolves to its payId. */
async function becomesDue({ gateway }: SignedShop, requestId: string): Promise<string> {
  const { ledger, receipts } = gateway.store;
  const record = await eventually(async (): Promise<PaymentRecord | undefined> => {
    const [receipt] = (await receipts.page({ limit: 1, requestId })).receipts;
    const found = receipt?.payment && (await ledger.read(receipt.payment.replayKey));
    return found?.state === 'undelivered' && found.leaseUntil === 0 ? found : undefined;
  }, 'a payment that is not delivered');
  const at = new Date();
  const settledAt = new Date(record.settledAt ?? at);
  const receipt = receiptOf(record, { settledAt, at, durationMs: 0, delivery: undefined, refundDue: true });
  const due = await ledger.advance({ ...fencingToken(record), to: 'refundDue', leaseMs: 0, receipt, events: [] });
  assert.equal(due.kind, 'done');
  return record.payId;
}
