import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, describe, it } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { CommerceEvent } from '../../../src/events/event.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { OPERATOR_TOKEN } from '../../support/gateway.ts';
import { type ConsolePage, luminance, openConsole, setupOf } from './console-page.ts';
import { cutTexts, everythingKept, focused, observed, overflow, paints, progressShown } from './in-page.js';
import { flat, recordsOf } from './parse-csv.ts';
import { makeCalls, oldReceipt } from './sample-calls.ts';

const DAY_MS = 24 * 3_600_000;
/** Contrast that WCAG 2 AA asks of drawings. */
const LEAST_CONTRAST = 3;
/** Receipts of earlier days: more than a page of them. */
const EARLIER = 600;

/** Waits until nothing is read. */
async function settled(page: Page): Promise<void> {
  await page.locator('#history[aria-busy="false"]').waitFor({ state: 'attached' });
}

/** The second page of receipts, and all after it. */
const LATER_PAGES = /api\/receipts\?limit=500&cursor=/;

/** Lets no further page of receipts arrive until `release`. */
async function holdPages(page: Page): Promise<{ release(): Promise<void> }> {
  const held = Promise.withResolvers<void>();
  await page.route(LATER_PAGES, async (route) => {
    await held.promise;
    await route.continue();
  });
  return {
    async release() {
      held.resolve();
      await settled(page);
      await page.unroute(LATER_PAGES);
    },
  };
}

async function choose(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click();
  await settled(page);
}

function chart(page: Page, title: string): Locator {
  return page.locator('.chart', { has: page.getByRole('heading', { name: new RegExp(`^${title}`) }) });
}

/** What the page says is missing. */
function missing(page: Page): Locator {
  return page.locator('#history-missing');
}

/** The numbers of a chart by its table: those of each time, oldest first. */
async function numbersOf(page: Page, title: string): Promise<readonly (readonly string[])[]> {
  const newest = await chart(page, title).locator('tbody tr').all();
  return Promise.all(newest.toReversed().map((row) => row.locator('td').allTextContents()));
}

/** The numbers under a chart, by their names. */
async function legendOf(page: Page, title: string): Promise<Readonly<Record<string, string>>> {
  const entries = await chart(page, title).locator('.legend li').all();
  const pairs = entries.map(async (entry) => {
    const number = await entry.locator('.amount').innerText();
    return [(await entry.innerText()).slice(0, -number.length).trim(), number] as const;
  });
  return Object.fromEntries(await Promise.all(pairs));
}

/** The contrast of two opaque colours, as WCAG 2 has it. */
function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [one, other].map(luminance).sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** Saves a file of the page. */
async function saved(page: Page, button: string): Promise<{ readonly name: string; readonly text: string }> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button }).click(),
  ]);
  return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
}

describe('the console over time', () => {
  let opened: ConsolePage;
  let page: Page;
  const setup = setupOf(async (started) => {
    await makeCalls(started);
    const earlier = Array.from({ length: EARLIER }, (_, at) => {
      const agoMs = 2 * DAY_MS + (at * 20 * DAY_MS) / EARLIER;
      const receipt = oldReceipt(at + 1, { delivered: true, durationMs: at + 1 }, agoMs);
      const payment = receipt.payment ?? assert.fail('a payment');
      return { ...receipt, payment: { ...payment, amount: '0.000000000000000001' } };
    });
    await started.gateway.store.receipts.write(earlier);
  });
  before(async () => {
    opened = await openConsole(setup.browser, setup.testbed.gateway);
    page = opened.page;
    await settled(page);
  });

  const all = async <T>(path: string, list: string): Promise<readonly T[]> => {
    const items: T[] = [];
    for (let cursor = ''; ; ) {
      const answer = await setup.testbed.gateway.operator(`${path}?limit=500${cursor && `&cursor=${cursor}`}`);
      const body = (await answer.json()) as Readonly<Record<string, T[]>> & { nextCursor?: string };
      items.push(...(body[list] ?? []));
      if (body.nextCursor === undefined) return items;
      cursor = body.nextCursor;
    }
  };

  const receipts = () => all<Receipt>('/api/receipts', 'receipts');

  it('shows at once what was sold in 24 hours, in the hour in which it was sold', async () => {
    const sold = { Delivered: '0.040', 'Not delivered': '0.001' };
    assert.deepEqual(await legendOf(page, 'Revenue'), sold);
    assert.deepEqual(await legendOf(page, 'Deliveries'), { Paid: '5', Free: '1', 'Paid, not delivered': '1' });
    const rows = await numbersOf(page, 'Deliveries');
    assert.equal(rows.length, 24);
    const sum = (column: number) => rows.reduce((total, row) => total + (Number(row[column]) || 0), 0);
    assert.deepEqual([sum(1), sum(2), sum(3)], [5, 1, 1]);
    for (const [time = '', ...numbers] of rows.slice(0, -2)) assert.deepEqual(new Set(numbers), new Set(['0']), time);
  });

  it('shows the calls without a delivery as the events have them', async () => {
    const events = await all<CommerceEvent>('/api/events', 'events');
    const calls = Map.groupBy(events, ({ callId }) => callId);
    const typesOf = (call: readonly CommerceEvent[]) => new Set(call.map(({ type }) => type));
    const ended = [...calls.values()].map(typesOf).filter((types) => !types.has('payment.settled'));
    const expected = {
      Failed: ended.filter((types) => types.has('backend.failed')).length,
      Refused: ended.filter((types) => types.has('payment.rejected')).length,
      'Payment asked': ended.filter((types) => types.has('payment.required') && !types.has('payment.rejected')).length,
      Requested: 0,
    };
    assert.ok(expected['Payment asked'] > 5 && expected.Failed === 1 && expected.Refused === 1);
    const shown = Object.entries(await legendOf(page, 'Calls without a delivery'));
    assert.deepEqual(Object.fromEntries(shown.map(([name, count]) => [name, Number(count)])), expected);
    for (const [time = '', ...numbers] of (await numbersOf(page, 'Calls without a delivery')).slice(0, -2))
      assert.deepEqual([/ \(not kept\)$/.test(time), new Set(numbers)], [true, new Set(['–'])], time);
  });

  it('goes a month back, with exact sums of what is kept, and shows how far that is', async () => {
    await choose(page, '30 days');
    assert.equal(await page.getByRole('button', { name: '30 days' }).getAttribute('aria-pressed'), 'true');
    // As many digits as the days need, which depends on how the hours of today divide them.
    const revenue = Object.entries(await legendOf(page, 'Revenue'));
    assert.deepEqual(Object.fromEntries(revenue.map(([name, sum]) => [name, sum.replace(/0+$/, '')])), {
      Delivered: '0.0400000000000006',
      'Not delivered': '0.001',
    });
    assert.equal((await legendOf(page, 'Deliveries'))['Paid'], String(EARLIER + 5));
    await missing(page).getByText('the gateway keeps no older ones.').waitFor();
  });

  it('draws each number as high as it is, from the ground up, in its place', async () => {
    const drawn = chart(page, 'Deliveries');
    const top = Number(await drawn.locator('.plot > text').first().textContent());
    const ground = (await drawn.locator('.ground').boundingBox()) ?? assert.fail('a ground');
    const [, half] = await drawn.locator('.grid').all();
    const height = 2 * (ground.y - ((await half?.boundingBox())?.y ?? 0));
    const paid = (await numbersOf(page, 'Deliveries')).map(([, number]) => Number(number) || 0);
    const bars = await drawn.locator('.bar[data-tone="accent"]').all();
    const boxes = await Promise.all(bars.map(async (bar) => (await bar.boundingBox()) ?? assert.fail('a bar')));
    const places = boxes.map(({ x, width }) => Math.floor((paid.length * (x + width / 2 - ground.x)) / ground.width));
    assert.ok(places.length > 15 && Math.max(...paid) <= top);
    assert.deepEqual(
      places,
      paid.flatMap((number, bucket) => (number > 0 ? [bucket] : [])),
    );
    for (const [at, box] of boxes.entries()) {
      const number = paid[places[at] ?? 0] ?? 0;
      assert.ok(Math.abs(box.height - (height * number) / top) < 1, `${number} of ${top}: ${box.height} of ${height}`);
      assert.ok(Math.abs(box.y + box.height - ground.y) < 1, 'it stands on the ground');
    }
  });

  it('shows the numbers of the time that is pointed at, the same in every chart', async () => {
    const rows = await numbersOf(page, 'Deliveries');
    const plot = page.locator('.plot').first();
    const { width = 0 } = (await plot.boundingBox()) ?? {};
    await plot.hover({ position: { x: (width * 20.5) / rows.length, y: 50 } });
    const [time = '', paid] = rows[20] ?? [];
    assert.deepEqual(new Set(await page.locator('.plot .moment').allTextContents()).has(time), true);
    assert.equal((await legendOf(page, 'Deliveries'))['Paid'], paid);
    await page.mouse.move(0, 0);
    assert.equal((await legendOf(page, 'Deliveries'))['Paid'], String(EARLIER + 5));
  });

  it('gives the receipts of the range as CSV, equal to those of the gateway', async () => {
    const { name, text } = await saved(page, 'Receipts as CSV');
    assert.match(name, /^receipts-30-days-\d{8}T\d{4}Z\.csv$/);
    const read = recordsOf(text).map((record) => Object.entries(record).filter(([, value]) => value !== ''));
    assert.deepEqual(
      read.map((fields) => Object.fromEntries(fields)),
      (await receipts()).map((receipt) => flat(receipt)),
    );
    assert.ok(!text.includes(OPERATOR_TOKEN));
  });

  it('gives the charts as CSV, equal to what they show', async () => {
    const { name, text } = await saved(page, 'Charts as CSV');
    assert.match(name, /^charts-30-days-\d{8}T\d{4}Z\.csv$/);
    const records = recordsOf(text);
    const shown = await numbersOf(page, 'Deliveries');
    assert.deepEqual(
      records.map((record) =>
        ['Paid', 'Free', 'Paid, not delivered'].map((series) => record[`Deliveries ${series}`] || '–'),
      ),
      shown.map(([, ...numbers]) => numbers),
    );
    assert.ok(!text.includes(OPERATOR_TOKEN));
  });

  it('keeps the token out of every address, and breaks no rule of the policy', async () => {
    for (const { url } of opened.asked) {
      assert.ok(
        url.startsWith(`${setup.testbed.gateway.url}/`) || url.startsWith(`blob:${setup.testbed.gateway.url}/`),
        url,
      );
      assert.ok(!url.includes(OPERATOR_TOKEN), url);
    }
    assert.deepEqual(await page.evaluate(observed), { violations: [], hits: 0 });
    assert.deepEqual(opened.errors, []);
  });

  it('is used by keyboard alone: a range, a table, reading again', async () => {
    await page.getByRole('button', { name: '7 days' }).focus();
    await page.keyboard.press('Enter');
    await settled(page);
    assert.equal(await page.evaluate(focused), 'button 7 days');
    await page.getByText('7 d', { exact: true }).and(page.locator('[aria-pressed="true"]')).waitFor();
    const summary = chart(page, 'Deliveries').locator('summary');
    await summary.focus();
    await page.keyboard.press('Enter');
    const table = page.getByRole('table', { name: 'Deliveries by time' });
    await table.waitFor();
    assert.equal(await table.getByRole('row').count(), 29);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(focused), 'div Deliveries by time', 'what scrolls can be reached');
    await page.getByRole('button', { name: 'Read again' }).focus();
    await page.keyboard.press('Enter');
    await settled(page);
    assert.equal(await table.isVisible(), true, 'an open table stays open');
    await summary.focus();
    await page.keyboard.press('Enter');
    assert.equal(await table.isVisible(), false);
  });

  it('each drawing is described by a sentence with its sums', async () => {
    await choose(page, '24 hours');
    await page
      .getByRole('img', {
        name: 'Revenue TUSD · eip155:31337, 24 hours by hour: Delivered 0.040, Not delivered 0.001. The table',
      })
      .waitFor();
  });

  it('shows how far reading is, does not move the page, and can be stopped', async () => {
    const place = () => page.locator('#calls-title').boundingBox();
    const before = await place();
    const pages = await holdPages(page);
    await page.getByRole('button', { name: '30 days' }).click();
    await page.getByText(/^Reading: 500 receipts, 0 events, back to \d+ \w+ \d\d:\d\d$/).waitFor();
    const progress = page.getByRole('progressbar', { name: 'Over time' });
    const done = Number(await progress.evaluate(progressShown));
    assert.ok(done > 0.2 && done < 0.5, `${done}`);
    assert.deepEqual(await place(), before);
    await page.getByRole('button', { name: 'Stop' }).click();
    await pages.release();
    await settled(page);
    await missing(page).getByText('Events: none read, because you stopped.').waitFor();
    assert.deepEqual(await place(), before);
    assert.equal(await page.getByRole('button', { name: 'Read again' }).isVisible(), true);
  });

  it('a range that is chosen while another is read is the one that is shown', async () => {
    const pages = await holdPages(page);
    await page.getByRole('button', { name: '30 days' }).click();
    await page.getByText(/^Reading: 500 receipts/).waitFor();
    await choose(page, '1 hour');
    await pages.release();
    assert.equal((await numbersOf(page, 'Deliveries')).length, 30);
    assert.equal((await legendOf(page, 'Deliveries'))['Paid'], '5');
    assert.equal(await page.getByRole('button', { name: '1 hour' }).getAttribute('aria-pressed'), 'true');
  });

  for (const colorScheme of ['light', 'dark'] as const)
    it(`its drawings have enough contrast in ${colorScheme}`, async () => {
      await page.emulateMedia({ colorScheme });
      await choose(page, '30 days');
      const painted = await page.evaluate(paints);
      for (const part of ['.bar', '.line line', '.line circle', '.ground', '.since', '.swatch'])
        assert.ok(
          painted.some((one) => one.part === part),
          part,
        );
      for (const { part, paint, behind } of painted)
        assert.ok(contrast(paint, behind) >= LEAST_CONTRAST, `${part} ${paint} on ${behind}`);
    });

  it('fits a phone of 320 pixels, with a table open, and shows the time that is touched', async () => {
    const phone = await openConsole(setup.browser, setup.testbed.gateway, {
      viewport: { width: 320, height: 640 },
      hasTouch: true,
      isMobile: true,
    });
    await choose(phone.page, '30 days');
    await chart(phone.page, 'Deliveries').locator('summary').tap();
    assert.equal(await phone.page.evaluate(overflow), 0);
    assert.deepEqual(await phone.page.evaluate(cutTexts), []);
    const plot = chart(phone.page, 'Deliveries').locator('.plot');
    const { width = 0 } = (await plot.boundingBox()) ?? {};
    const position = { x: (width * 20.5) / 30, y: 50 };
    const [time = '', paid] = (await numbersOf(phone.page, 'Deliveries'))[20] ?? [];
    await plot.tap({ position });
    assert.equal(await chart(phone.page, 'Deliveries').locator('.moment').textContent(), time);
    assert.equal((await legendOf(phone.page, 'Deliveries'))['Paid'], paid);
    await plot.tap({ position });
    assert.equal((await legendOf(phone.page, 'Deliveries'))['Paid'], String(EARLIER + 5));
    await phone.close();
  });

  it('is forgotten with the token, also while it is read', async () => {
    const other = await openConsole(setup.browser, setup.testbed.gateway);
    await settled(other.page);
    const pages = await holdPages(other.page);
    await other.page.getByRole('button', { name: '30 days' }).click();
    await other.page.getByText(/^Reading: 500 receipts/).waitFor();
    await other.page.getByRole('button', { name: 'Forget token' }).click();
    const asked = other.asked.length;
    await pages.release();
    await other.page.getByLabel('Operator token').waitFor();
    assert.ok(!(await other.page.evaluate(everythingKept)).includes('TUSD'));
    assert.equal(other.asked.length, asked, 'nothing more is read');
    await other.close();
  });
});
