import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openGateway } from '../../../src/operator/console/gateway.js';
import {
  type History,
  type Progress,
  type RangeKey,
  rangeAt,
  readHistory,
  receiptHead,
  told,
} from '../../../src/operator/console/history.js';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { OPERATOR_TOKEN } from '../../support/gateway.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { recordsOf } from './parse-csv.ts';
import { event, oldReceipt } from './sample-calls.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Delivered receipts that the store keeps. */
const KEPT = 1_200;

/** Reads a range of a gateway; also what was asked of it. */
async function readOf(
  { gateway }: Testbed,
  key: RangeKey,
  options: Progress & { readonly pages?: number; readonly ask?: typeof fetch } = {},
): Promise<History & { readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const { ask = fetch, ...rest } = options;
  const noted: typeof fetch = (url, init) => {
    asked.push(String(url).slice(gateway.url.length));
    return ask(url, init);
  };
  const opened = openGateway(OPERATOR_TOKEN, { base: new URL(`${gateway.url}/`), ask: noted });
  const now = Date.now();
  return { ...(await readHistory(opened, rangeAt(key, now), { ...rest, now })), asked };
}

function delivered(number: number, agoMs: number, change: Partial<Receipt> = {}): Receipt {
  return oldReceipt(number, { delivered: true, ...change }, agoMs);
}

const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

describe('the history of a shop', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: { storage: { receiptsMaxLength: KEPT, eventsMaxLength: 2_000 } } });
    const { receipts, feed } = testbed.gateway.store;
    // One each half hour for 20 days, and an owed one that is older than all.
    await receipts.write(Array.from({ length: 960 }, (_, at) => delivered(at + 1, (at + 0.5) * 0.5 * HOUR_MS)));
    await receipts.write([oldReceipt(5_000, { metadata: { refundDue: true } }, 60 * DAY_MS)]);
    const calls = Array.from({ length: 700 }, (_, at) => ({ callId: `call_${at}`, requestId: `req-${at}` }));
    await feed.append(calls.flatMap((call) => [event('resource.requested', call), event('payment.required', call)]));
  });
  after(() => testbed.close());

  it('of a day that is kept is whole, and is read no further than it reaches', async () => {
    const { tally, receipts, asked, range } = await readOf(testbed, 'day');
    assert.equal(receipts.end, 'from');
    const within = Math.floor((Date.now() - range.from) / (0.5 * HOUR_MS) + 0.5);
    assert.equal(total(tally.deliveries.paid), within);
    assert.equal(asked.filter((path) => path.startsWith('/api/receipts')).length, 1);
  });

  it('of a month shows how far back receipts of deliveries are kept, whatever older ones are owed', async () => {
    const history = await readOf(testbed, 'month');
    const { tally, receipts, events } = history;
    assert.equal(total(tally.deliveries.paid), 960);
    const oldest = Date.now() - 959.5 * 0.5 * HOUR_MS;
    assert.equal(receipts.end, 'kept');
    assert.ok(Math.abs(receipts.since - oldest) < 60_000, new Date(receipts.since).toISOString());
    assert.deepEqual([total(tally.ends.asked), events.entries], [700, 1_400]);
    const [first = '', second = ''] = told(history);
    assert.match(first, /^Receipts of deliveries reach back to \d+ \w+ \d\d:\d\d; the gateway keeps no older ones\.$/);
    assert.match(second, /^Events reach back to .*; before that, calls without a delivery are not known\.$/);
  });

  it('of a week is whole when the gateway still has older deliveries', async () => {
    const history = await readOf(testbed, 'week');
    assert.deepEqual([history.receipts.end, told(history).length], ['from', 1]);
  });

  it('of a week that has a gap before an older owed payment shows the gap', async () => {
    // The list goes on below the range, but with nothing that was delivered.
    const ask: typeof fetch = async (url, init) => {
      const response = await fetch(url, init);
      const { pathname } = new URL(String(url));
      if (pathname !== '/api/receipts') return response;
      const { receipts, ...rest } = (await response.json()) as { receipts: Receipt[] };
      const left = receipts.filter((receipt) => !receipt.delivered || Date.parse(receipt.at) > Date.now() - 3 * DAY_MS);
      return Response.json({ receipts: left, ...rest });
    };
    const { receipts, asked } = await readOf(testbed, 'week', { ask });
    assert.equal(receipts.end, 'kept');
    assert.ok(Math.abs(receipts.since - (Date.now() - 3 * DAY_MS)) < HOUR_MS);
    assert.match(asked.at(-1) ?? '', /limit=1&delivered=true&cursor=receipt_/);
  });

  it('gives the receipts of the range as CSV, each once, newest first', async () => {
    const { rows, range } = await readOf(testbed, 'month');
    const ids = recordsOf(receiptHead() + (await new Blob([...rows]).text())).map(({ id = '' }) => id);
    assert.equal(ids.length, 960);
    assert.deepEqual(ids, [...new Set(ids)].sort().reverse());
    assert.ok(range.from > Date.now() - 31 * DAY_MS, 'the owed one of 60 days ago is outside');
  });

  it('that is longer than its bound of pages shows where reading ended', async () => {
    const history = await readOf(testbed, 'month', { pages: 1 });
    assert.deepEqual([history.receipts.entries, history.receipts.end], [500, 'bound']);
    assert.equal(total(history.tally.deliveries.paid), 500);
    assert.match(
      told(history)[0] ?? '',
      /^Receipts of deliveries were read back to .*, 500 of them; older ones are left out\.$/,
    );
  });

  it('that is stopped keeps what was read, and shows how far', async () => {
    let pages = 0;
    const history = await readOf(testbed, 'month', { going: () => pages < 1, onPage: () => (pages += 1) });
    assert.deepEqual([history.receipts.entries, history.receipts.end, history.events.end], [500, 'stopped', 'stopped']);
    const [first = '', second = ''] = told(history);
    assert.match(first, /^Receipts of deliveries were read back to .*, because you stopped\.$/);
    assert.equal(second, 'Events: none read, because you stopped.');
  });

  it('that cannot be read to its end shows why', async () => {
    const ask: typeof fetch = (url, init) =>
      String(url).includes('cursor=')
        ? Promise.resolve(Response.json({ code: 'STORAGE_ERROR' }, { status: 503 }))
        : fetch(url, init);
    const history = await readOf(testbed, 'month', { ask });
    assert.equal(history.receipts.entries, 500);
    assert.match(told(history)[0] ?? '', /^Receipts of deliveries were read back to .*\. The store is away/);
  });

  it('tells after each page how much was read, and how far back', async () => {
    const told: { readonly receipts: number; readonly events: number; readonly back: number }[] = [];
    await readOf(testbed, 'month', { onPage: (read) => void told.push(read) });
    assert.deepEqual(
      told.map(({ receipts, events }) => [receipts, events]),
      [
        [500, 0],
        [960, 0],
        [960, 500],
        [960, 1_000],
        [960, 1_400],
      ],
    );
    assert.ok((told[0]?.back ?? 0) > (told[1]?.back ?? 0));
  });

  it('of which the store has dropped the oldest deliveries reaches back to the oldest that is left', async () => {
    // Newer ones push out the oldest, as many in a write as it brings.
    for (let batch = 0; batch < 4; batch += 1)
      await testbed.gateway.store.receipts.write(
        Array.from({ length: 100 }, (_, at) => delivered(10_000 + 100 * batch + at, at * 1_000)),
      );
    const { receipts, tally } = await readOf(testbed, 'month');
    assert.equal(total(tally.deliveries.paid), KEPT);
    assert.ok(receipts.since > Date.now() - 18 * DAY_MS, new Date(receipts.since).toISOString());
    assert.equal(receipts.end, 'kept');
  });
});

describe('a payment that was signed before the range and settled in it', () => {
  it('is counted, on whatever page it comes', async (t) => {
    const testbed = await openTestbed();
    t.after(() => testbed.close());
    const { from } = rangeAt('hour', Date.now());
    const signed = (number: number, at: number, change: Partial<Receipt> = {}) =>
      delivered(number, Date.now() - at, change);
    const late = signed(1, from - 30 * 60_000, { resourceId: 'late' });
    const payment = { ...(late.payment ?? assert.fail('a payment')), settledAt: new Date().toISOString() };
    // A page of 500 that ends before the range.
    const newer = Array.from({ length: 499 }, (_, at) => signed(at + 3, Date.now() - at * 1_000));
    await testbed.gateway.store.receipts.write([{ ...late, payment }, signed(2, from - 60_000), ...newer]);
    const { tally, rows } = await readOf(testbed, 'hour');
    assert.equal(total(tally.deliveries.paid), 500);
    assert.match(await new Blob([...rows]).text(), /,late,/);
  });
});

describe('the history of a shop that has sold nothing', () => {
  it('says that there is nothing, for certain only since now', async (t) => {
    const testbed = await openTestbed();
    t.after(() => testbed.close());
    const history = await readOf(testbed, 'day');
    assert.deepEqual(told(history), [
      'Receipts of deliveries: the gateway keeps none.',
      'Events: the gateway keeps none.',
    ]);
    assert.ok(history.receipts.since >= history.at);
  });
});
