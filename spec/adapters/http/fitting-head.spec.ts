import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fittingHead } from '../../../src/adapters/http/response-writer.ts';
import { USUAL_ROOM } from '../../../src/payments/x402/wire/challenge.ts';
import { decodeHeader } from '../../../src/payments/x402/wire/proof.ts';
import type { PaymentResponse } from '../../../src/payments/x402/wire/types.ts';
import { fieldBytes, fieldsBytes } from '../../../src/server/http/respond.ts';

const ROOM = USUAL_ROOM.plain;
const payment: PaymentResponse = {
  ...{ success: true, transaction: `0x${'ab'.repeat(32)}`, network: 'eip155:84532', status: 'settled' },
  ...{ provider: 'x402', amount: '0.01', currency: 'USDC', payer: `0x${'1'.repeat(40)}` },
  ...{ receiptId: 'receipt_1', requestId: 'req_1' },
  extensions: { 'offer-receipt': { info: { receipt: 's'.repeat(700) }, schema: {} } },
};

/** The members of PAYMENT-RESPONSE and the merchant's fields of an answer with this link. */
function answered(link: number, etag = 10) {
  const merchant = { 'content-type': 'application/json', link: 'l'.repeat(link), etag: 'e'.repeat(etag) };
  const { payment: value = '', merchant: kept, leftOut } = fittingHead(ROOM, merchant, payment);
  assert.ok(fieldsBytes(kept) + fieldBytes('payment-response', value) <= ROOM);
  const document = JSON.parse(Buffer.from(decodeHeader(value) ?? []).toString());
  return { members: Object.keys(document), kept: Object.keys(kept).sort(), leftOut };
}

const ALL = ['content-type', 'etag', 'link'];

describe('the head of a paid answer', () => {
  it('is whole where there is room', () => {
    const { members, kept, leftOut } = answered(100);
    assert.ok(members.includes('extensions'));
    assert.deepEqual([kept, leftOut], [ALL, []]);
  });

  it('has no signed receipt where the merchant needs the room, and then what a reader needs alone', () => {
    const unsigned = answered(2_500);
    assert.ok(unsigned.members.includes('amount') && !unsigned.members.includes('extensions'));
    const needed = answered(2_900);
    assert.deepEqual(needed.members, ['success', 'transaction', 'network', 'payer', 'receiptId']);
    for (const { kept, leftOut } of [unsigned, needed]) assert.deepEqual([kept, leftOut], [ALL, []]);
  });

  it('loses the longest field of the merchant, and names it', () => {
    const { members, kept, leftOut } = answered(3_400);
    assert.ok(members.includes('extensions'), 'there is room again');
    assert.deepEqual([kept, leftOut], [['content-type', 'etag'], ['link']]);
    assert.deepEqual(answered(3_400, 3_300).leftOut, ['link', 'etag']);
  });

  it('is within its room without a payment too', () => {
    const { merchant, leftOut } = fittingHead(ROOM, { link: 'l'.repeat(4_000), etag: 'e' }, undefined);
    assert.deepEqual([merchant, leftOut], [{ etag: 'e' }, ['link']]);
  });
});
