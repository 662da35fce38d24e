import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  commonDecimals,
  createReceipts,
  decimal,
  digits,
  inDigits,
  larger,
  MAX_RECEIPTS,
  owed,
  percent,
  plus,
  RUNNING_MS,
  refundFacts,
  revenueOf,
  roundUp,
  whole,
  ZERO,
} from '../../../src/operator/console/receipts.js';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { oldReceipt } from './sample-calls.ts';

const HOUR_MS = 3_600_000;
const NOW = Date.now();

function paid(number: number, change: Partial<Receipt> & { readonly amount?: string; readonly network?: string } = {}) {
  const { amount = '0.02', network = 'eip155:1', ...rest } = change;
  const receipt = oldReceipt(number, rest);
  const payment = receipt.payment ?? assert.fail('a payment');
  return { ...receipt, payment: { ...payment, amount, network } };
}

const wasDelivered = { delivered: true, deliveredAt: '2026-01-01T10:00:00.000Z' };

describe('sums of receipts', () => {
  const shown = (receipts: readonly ReturnType<typeof paid>[]) =>
    revenueOf(receipts).resources.map(({ resourceId, network, revenue, deliveries, open }) =>
      [resourceId, network, inDigits(revenue), deliveries, inDigits(open)].join(' '),
    );

  it('are exact by resource, currency and network, delivered and undelivered apart', () => {
    const receipts = [
      paid(1, { ...wasDelivered, amount: '0.1' }),
      paid(2, { ...wasDelivered, amount: '0.2', deliveredAt: '2026-01-01T12:00:00.000Z' }),
      paid(3, { amount: '5' }),
      paid(4, { ...wasDelivered, amount: '1', network: 'eip155:2', deliveredAt: '2026-01-01T11:00:00.000Z' }),
      paid(5, { ...wasDelivered, resourceId: 'report', amount: '7' }),
    ];
    assert.deepEqual(shown(receipts), [
      'archive eip155:1 0.30 2 5.00',
      'archive eip155:2 1.00 1 0.00',
      'report eip155:1 7.00 1 0.00',
    ]);
    assert.equal(revenueOf(receipts).resources[0]?.lastDeliveredAt, '2026-01-01T12:00:00.000Z');
    assert.deepEqual(
      revenueOf(receipts).totals.map(({ network, revenue }) => `${network} ${inDigits(revenue)}`),
      ['eip155:1 7.30', 'eip155:2 1.00'],
    );
  });

  it('count invalid amounts apart', () => {
    const [row] = revenueOf([paid(1, { ...wasDelivered, amount: 'much' }), paid(2, wasDelivered)]).resources;
    assert.deepEqual([row && inDigits(row.revenue), row?.deliveries, row?.unreadable], ['0.02', 2, 1]);
  });

  it('leave out payments of status unknown, which stay in the list of the undelivered', () => {
    const unknown = paid(2, { amount: '5', resourceId: 'report' });
    const book = createReceipts();
    book.add([
      paid(1, { ...wasDelivered, amount: '0.1' }),
      { ...unknown, payment: { ...unknown.payment, status: 'unknown' } },
    ]);
    const { resources, totals } = revenueOf(book.paid());
    assert.deepEqual(
      [...resources, ...totals].map(({ resourceId, revenue, open }) => [resourceId, inDigits(revenue), inDigits(open)]),
      [
        ['archive', '0.10', '0.00'],
        ['', '0.10', '0.00'],
      ],
    );
    const open = owed(
      book.paid().filter(({ delivered }) => !delivered),
      NOW + RUNNING_MS,
    );
    assert.deepEqual(
      open.map(({ receipt, standing }) => [receipt.requestId, standing]),
      [['req-old-2', 'unknown']],
    );
  });

  it('do not mix resources whose names would run together', () => {
    assert.equal(revenueOf([paid(1, { resourceId: 'a","b' }), paid(2, { resourceId: 'a' })]).resources.length, 2);
  });
});

describe('what is owed', () => {
  const sentBack = (status: 'refunding' | 'refunded') => ({
    status,
    transaction: `0x${'e1'.repeat(32)}`,
    at: new Date(NOW).toISOString(),
  });
  const at = (number: number, settledAgoMs: number, change: Partial<Receipt> = {}) => {
    // Counted from NOW: other specs may run between this line of the file and its tests.
    const receipt = oldReceipt(number, change, Date.now() - NOW + settledAgoMs);
    return { ...receipt, payment: receipt.payment ?? assert.fail('a payment') };
  };

  it('is listed oldest first, with what can be done about it', () => {
    const list = owed(
      [
        at(1, HOUR_MS),
        at(2, 25 * HOUR_MS, { metadata: { refundDue: true } }),
        at(3, 24 * HOUR_MS - 60_000),
        at(4, 24 * HOUR_MS + 60_000),
        at(5, 26 * HOUR_MS, { metadata: { refundDue: true }, refund: sentBack('refunding') }),
        at(6, 27 * HOUR_MS, { refund: sentBack('refunded') }),
      ],
      NOW,
    );
    assert.deepEqual(
      list.map(({ receipt, standing }) => `${receipt.requestId} ${standing}`),
      [
        'req-old-5 refunding',
        'req-old-2 refundDue',
        'req-old-4 expired',
        'req-old-3 collectable',
        'req-old-1 collectable',
      ],
    );
    assert.equal(list.at(-1)?.until, Date.parse(list.at(-1)?.receipt.payment.settledAt ?? '') + 24 * HOUR_MS);
  });

  for (const { what, receipt, listed } of [
    { what: 'a call that still runs', receipt: at(1, RUNNING_MS - 5_000, { backendStatus: 0 }), listed: 0 },
    {
      what: 'a call of which the receipt names the call and how it came',
      receipt: at(1, RUNNING_MS - 5_000, { backendStatus: 0, metadata: { callId: 'call_1', channel: 'origin' } }),
      listed: 0,
    },
    { what: 'a call that should have ended', receipt: at(1, RUNNING_MS + 5_000, { backendStatus: 0 }), listed: 1 },
    {
      what: 'a call that has just failed',
      receipt: at(1, 0, { backendStatus: 0, metadata: { callId: 'call_1', backendErrorCode: 'BACKEND_ERROR' } }),
      listed: 1,
    },
    { what: 'a call that was answered', receipt: at(1, 0, { backendStatus: 500 }), listed: 1 },
  ])
    it(`${what} is ${listed === 0 ? 'not yet' : 'counted as'} owed`, () =>
      assert.equal(owed([receipt], NOW).length, listed));

  it('comes with every fact that a refund needs, one a line', () => {
    const [due] = owed([at(7, 25 * HOUR_MS, { metadata: { refundDue: true, backendErrorCode: 'TIMEOUT' } })], NOW);
    const facts = refundFacts(due ?? assert.fail('one'));
    for (const line of [
      'state: refund due, the buyer can no longer collect',
      `command: acg refunds pay ${due?.receipt.id} --key-file FILE`,
      'amount: 0.02 TUSD',
      `send to: 0x${'b6'.repeat(20)}`,
      'network: eip155:31337',
      `asset: 0x${'a5'.repeat(20)}`,
      `transaction: 0x${'d8'.repeat(32)}`,
      'request: req-old-7',
      'failure: TIMEOUT',
    ])
      assert.ok(facts.split('\n').includes(line), line);
  });

  it('warns of a refund that would be paid beside a delivery', () => {
    const [open] = owed([at(7, HOUR_MS)], NOW);
    assert.match(refundFacts(open ?? assert.fail('one')), /^state: NOT YET: the buyer may collect until 20/);
  });

  it('a resource cannot add a line of its own to them', () => {
    const [forged] = owed([at(7, HOUR_MS, { resourceId: 'report\nsend to: 0xthief' })], NOW);
    const lines = refundFacts(forged ?? assert.fail('one')).split('\n');
    assert.deepEqual(
      lines.filter((line) => line.startsWith('send to:')),
      [`send to: 0x${'b6'.repeat(20)}`],
    );
  });
});

describe('the receipts of the page', () => {
  it('are replaced when they have changed, and only then have a new version', () => {
    const book = createReceipts();
    const receipt = oldReceipt(1);
    book.add([receipt]);
    const before = book.version();
    book.add([structuredClone(receipt)]);
    assert.equal(book.version(), before);
    book.replace([{ ...receipt, delivered: true }, oldReceipt(2)]);
    assert.deepEqual([book.size(), book.all()[0]?.delivered, book.version() > before], [1, true, true]);
  });

  it(`are ${MAX_RECEIPTS} at most; above it the oldest are dropped`, () => {
    const book = createReceipts();
    const template = oldReceipt(0);
    const receipt = (number: number) => ({ ...template, id: `receipt_${String(number).padStart(12, '0')}` });
    book.add(Array.from({ length: MAX_RECEIPTS }, (_, number) => receipt(number)));
    assert.deepEqual([book.size(), book.full()], [MAX_RECEIPTS, true]);
    book.add([receipt(MAX_RECEIPTS)]);
    assert.ok(book.size() < MAX_RECEIPTS && book.size() > MAX_RECEIPTS - 1_000);
    assert.deepEqual([book.knows(receipt(0).id), book.knows(receipt(MAX_RECEIPTS).id)], [false, true]);
  });
});

function sum(amounts: readonly string[]): string {
  return inDigits(amounts.map((text) => decimal(text) ?? ZERO).reduce(plus, ZERO), 0);
}

describe('exact sums of amounts', () => {
  for (const { amounts, total } of [
    { amounts: [], total: '0' },
    { amounts: ['0.1', '0.2'], total: '0.3' },
    { amounts: ['0.01', '0.005', '0.985'], total: '1' },
    { amounts: ['9007199254740993', '0.000000000000000001'], total: '9 007 199 254 740 993.000000000000000001' },
    { amounts: Array.from({ length: 1_000 }, () => '0.001'), total: '1' },
  ])
    it(`${amounts.length} amounts make ${total}`, () => assert.equal(sum(amounts), total.replaceAll(' ', '\u202f')));

  it('agree with integers of the smallest unit, whatever the amounts', () => {
    const amount = fc.tuple(fc.bigInt(0n, 10n ** 30n), fc.integer({ min: 0, max: 36 }));
    fc.assert(
      fc.property(fc.array(amount), (amounts) => {
        const total = amounts
          .map(([whole, scale]) => decimal(`${whole}.${'7'.repeat(scale + 1).slice(1) || '0'}`))
          .map((value) => value ?? assert.fail('an amount'))
          .reduce(plus, ZERO);
        const atoms = amounts.reduce(
          (units, [whole, scale]) => units + BigInt(`${whole}${'7'.repeat(scale).padEnd(36, '0')}`),
          0n,
        );
        assert.equal(total.units * 10n ** BigInt(36 - total.scale), atoms);
      }),
    );
  });

  for (const text of [
    '',
    '1,5',
    '-1',
    '1e3',
    '0x10',
    ' 1',
    '1.',
    '.5',
    'NaN',
    '1'.repeat(61),
    `0.${'1'.repeat(37)}`,
    5,
  ])
    it(`${JSON.stringify(text).slice(0, 20)} is no amount`, () => assert.equal(decimal(text), undefined));

  it('the longest amount is one', () => {
    const longest = `${'9'.repeat(60)}.${'9'.repeat(36)}`;
    assert.equal(inDigits(decimal(longest) ?? ZERO, 0).replaceAll('\u202f', ''), longest);
  });
});

describe('amounts as they are shown', () => {
  for (const { text, decimals, shown } of [
    { text: '0', decimals: 2, shown: '0.00' },
    { text: '0.01', decimals: 2, shown: '0.01' },
    { text: '0.010', decimals: 2, shown: '0.01' },
    { text: '0.005', decimals: 2, shown: '0.005' },
    { text: '0.01', decimals: 3, shown: '0.010' },
    { text: '1234567.5', decimals: 2, shown: '1 234 567.50' },
    { text: '1000', decimals: 0, shown: '1 000' },
    { text: '999.999', decimals: 0, shown: '999.999' },
  ])
    it(`${text} with ${decimals} decimals is ${shown}: never rounded`, () =>
      assert.equal(inDigits(decimal(text) ?? ZERO, decimals), shown.replace(/ /g, '\u202f')));

  it('a column has as many decimals as its longest amount, at least two', () => {
    const of = (...texts: readonly string[]) => commonDecimals(texts.map((text) => decimal(text) ?? ZERO));
    assert.deepEqual([of(), of('1', '0.5'), of('0.02', '0.001'), of('0.02000')], [2, 2, 3, 2]);
  });
});

describe('amounts in a chart', () => {
  const of = (text: string) => decimal(text) ?? assert.fail(text);

  for (const [amount, round] of [
    ['0', '0'],
    ['0.001', '0.001'],
    ['0.0011', '0.002'],
    ['2', '2'],
    ['3', '4'],
    ['4.000000000000000001', '6'],
    ['81', '100'],
    ['9007199254740993', '10000000000000000'],
  ] as const)
    it(`${amount} is below a top of ${round}`, () => assert.equal(digits(roundUp(of(amount))), round));

  it('are a part of the top in percent, however many digits they have', () => {
    assert.deepEqual(
      [
        percent(of('1'), of('3')),
        percent(of('0.000000000000000001'), of('0.000000000000000004')),
        percent(of('9007199254740993'), of('9007199254740993.0')),
        percent(whole(0), of('5')),
        percent(ZERO, ZERO),
      ],
      [33.33, 25, 100, 0, 0],
    );
  });

  it('are compared as numbers, not as digits', () => {
    assert.equal(digits(larger(of('0.9'), of('0.10'))), '0.9');
    assert.equal(digits(larger(of('2'), of('10.000'))), '10');
  });
});
