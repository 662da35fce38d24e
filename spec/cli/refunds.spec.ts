import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Receipt, type ReceiptPayment, receiptId } from '../../src/receipts/receipt.ts';
import { PAYMENT, receipt, sha256 } from '../payments/ledger/samples.ts';
import { type OperatorBed, openOperatorBed } from './operator-bed.ts';
import { openShell } from './shell.ts';

const ends = new AsyncDisposableStack();
const shell = openShell(ends);
let bed: OperatorBed;

function owed(
  name: string,
  at: string,
  payment: Partial<ReceiptPayment>,
  metadata: Receipt['metadata'] = { refundDue: true },
): Receipt {
  return receipt(receiptId(), name, { at, payment: { ...PAYMENT, replayKey: sha256(name), ...payment }, metadata });
}

const PAYER = '0x9999999999999999999999999999999999999999';
/** A third of a cent more than a double can add to the other. */
const EXACT = '9007199254740993.003333';
const NEWER = owed('newer', '2026-03-02T00:00:00.000Z', { amount: EXACT, payer: PAYER });
const OLDER = owed('older', '2026-03-01T00:00:00.000Z', {}, { refundDue: true, backendErrorCode: 'BACKEND_TIMEOUT' });
const EURO = owed(
  'euro',
  '2026-03-03T00:00:00.000Z',
  { amount: '2', currency: 'EURC', asset: `0x${'4'.repeat(40)}` },
  { refundDue: true, deliveryUncertain: true },
);
const COLLECTABLE = owed('collectable', '2026-03-04T00:00:00.000Z', {}, { answerKept: true });
const DELIVERED = { ...owed('delivered', '2026-03-05T00:00:00.000Z', {}, {}), delivered: true };

before(async () => {
  bed = await openOperatorBed(ends);
});
after(() => ends.disposeAsync());

describe('acg refunds list', () => {
  it('says when nothing is due', async () => {
    const { code, lines, errors } = await shell.run(bed.folder, ['refunds', 'list'], { isTerminal: true });
    assert.deepEqual([code, lines, errors], [0, ['no refund is due'], '']);
  });

  it('prints whom to pay what and why, the oldest first, with exact sums of each asset', async () => {
    await bed.gateway.store.receipts.write([NEWER, OLDER, EURO, COLLECTABLE, DELIVERED]);
    const { code, lines, errors } = await shell.run(bed.folder, ['refunds', 'list']);
    assert.equal(code, 0);
    const { refunds, sums } = JSON.parse(lines.join('\n'));
    const { network, asset, settledAt, externalReference: transaction } = PAYMENT;
    const same = { resourceId: 'market_report', network, asset, settledAt, transaction };
    assert.deepEqual(refunds, [
      {
        ...same,
        ...{ receiptId: OLDER.id, requestId: 'older', dueSince: OLDER.at },
        ...{ payer: PAYMENT.payer, amount: '0.01', currency: 'USDC', reason: 'BACKEND_TIMEOUT' },
      },
      {
        ...same,
        ...{ receiptId: NEWER.id, requestId: 'newer', dueSince: NEWER.at },
        ...{ payer: PAYER, amount: EXACT, currency: 'USDC' },
      },
      {
        ...same,
        ...{ receiptId: EURO.id, requestId: 'euro', dueSince: EURO.at, asset: EURO.payment?.asset },
        ...{ payer: PAYMENT.payer, amount: '2', currency: 'EURC', first: 'ask the payer: it may have arrived' },
      },
    ]);
    assert.deepEqual(sums, [
      { amount: '9007199254740993.013333', currency: 'USDC', network, asset, refunds: 2 },
      { amount: '2', currency: 'EURC', network, asset: EURO.payment?.asset, refunds: 1 },
    ]);
    assert.deepEqual(errors.split('\n'), [
      `9007199254740993.013333 USDC on ${network} in 2 refunds`,
      `2 EURC on ${network} in 1 refund`,
      'undelivered without a refund due: 1, which acg receipts --undelivered lists',
      '',
    ]);
  });

  it('is a table on a terminal with the whole address, and CSV', async () => {
    const [table, csv] = await Promise.all([
      shell.run(bed.folder, ['refunds', 'list'], { isTerminal: true }),
      shell.run(bed.folder, ['refunds', 'list', '--csv']),
    ]);
    assert.deepEqual(
      table.lines.slice(0, 2).map((line) => line.replaceAll(/ {2,}/g, '|')),
      [
        'DUE SINCE|AMOUNT|TO|NETWORK|WHY|FIRST|RECEIPT',
        `${OLDER.at}|0.01 USDC|${PAYMENT.payer}|${PAYMENT.network}|BACKEND_TIMEOUT|${OLDER.id}`,
      ],
    );
    assert.equal(csv.lines.length, 4);
    assert.match(csv.lines[1] ?? '', new RegExp(`^${OLDER.id},${OLDER.at},${PAYMENT.payer},0\\.01,USDC,`));
  });
});
