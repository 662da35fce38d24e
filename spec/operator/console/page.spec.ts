import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { type ConsolePage, openConsole, rowsOf, setupOf } from './console-page.ts';
import { clipboardText, hide, observed } from './in-page.js';
import { buy, makeCalls, oldReceipt } from './sample-calls.ts';

describe('the operators’ console', () => {
  let opened: ConsolePage;
  let undelivered: string;
  const setup = setupOf(async (started) => {
    ({ undelivered } = await makeCalls(started));
    const due = { metadata: { refundDue: true, backendErrorCode: 'BACKEND_ERROR' } } as const;
    await started.gateway.store.receipts.write([oldReceipt(1, due)]);
  });
  before(async () => {
    opened = await openConsole(setup.browser, setup.testbed.gateway);
  });

  const receipts = async (): Promise<readonly Receipt[]> => {
    const answer = await setup.testbed.gateway.operator('/api/receipts?limit=500');
    return ((await answer.json()) as { receipts: Receipt[] }).receipts;
  };
  const figure = (name: string) => opened.page.locator(`[data-figure="${name}"] .value`);

  it('sends requests to its own gateway only, and breaks no rule of its policy', async () => {
    assert.ok(opened.asked.length > 20);
    for (const { url } of opened.asked) assert.ok(url.startsWith(`${setup.testbed.gateway.url}/`), url);
    assert.deepEqual(await opened.page.evaluate(observed), { violations: [], hits: 0 });
    assert.deepEqual(opened.errors, []);
  });

  it('shows what is ready, in words', async () => {
    const checks = await opened.page.locator('#checks li').allInnerTexts();
    assert.deepEqual(
      checks.map((text) => text.replace(/\s+/g, ' ')),
      ['✓ Gateway ready', '✓ Store sqlite ready', '✓ Backend ready', '✓ Adapter http ready', '✓ Payments x402 ready'],
    );
  });

  it('shows a revenue that is the exact sum of the receipts', async () => {
    const paid = (await receipts()).filter(({ delivered, payment }) => delivered && payment !== undefined);
    const atoms = paid.reduce((sum, { payment }) => sum + BigInt(Math.round(Number(payment?.amount) * 1e6)), 0n);
    assert.equal(atoms, 40_000n);
    assert.equal(await figure('Revenue').innerText(), '0.04');
    assert.equal(await figure('Paid deliveries').innerText(), String(paid.length));
    const rows = (await rowsOf(opened.page, 'revenue')).map((text) => text.split(/\s+/).join(' '));
    assert.match(rows.find((row) => row.startsWith('market_report')) ?? '', /Market report 3 0\.03 TUSD eip155:31337/);
    assert.match(rows.find((row) => row.startsWith('price_list')) ?? '', /Price list 2 0\.01 TUSD/);
  });

  it('lists the paid call that failed and the refund that is due, oldest first, with what a refund needs', async () => {
    const open = (await receipts()).find(({ requestId }) => requestId === undelivered);
    const rows = await rowsOf(opened.page, 'owed');
    assert.equal(rows.length, 2);
    assert.match(
      rows[0] ?? '',
      /Refund due\s+BACKEND_ERROR\s+archive\s+0\.020 TUSD\s+eip155:31337\s+0xb6b6…b6b6\s+0xd8d8…d8d8/,
    );
    assert.match(rows[1] ?? '', /Can be collected\s+backend_status_500\s+failing_post\s+0\.001 TUSD/);
    assert.match(rows[1] ?? '', /for 23 h 59 min/);
    assert.deepEqual(
      [await figure('Paid, not delivered').innerText(), await figure('Refunds due').innerText()],
      ['2', '1'],
    );
    const titles = await opened.page
      .locator('#owed tr')
      .nth(1)
      .locator('[title]')
      .evaluateAll((nodes) => nodes.map((node) => node.getAttribute('title')));
    assert.ok(titles.includes(open?.payment?.payer ?? '-') && titles.includes(open?.payment?.externalReference ?? '-'));
    await opened.page.getByRole('button', { name: `Copy the refund facts of ${open?.id}` }).click();
    const facts = await opened.page.locator('#refund-text').inputValue();
    assert.match(facts, /^state: NOT YET/);
    assert.ok(
      facts.includes(`send to: ${open?.payment?.payer}`) &&
        facts.includes(`transaction: ${open?.payment?.externalReference}`),
    );
    await opened.page.keyboard.press('Escape');
  });

  it('copies the facts of a refund', async () => {
    const context = opened.page.context();
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: setup.testbed.gateway.url });
    await opened.page.locator('#owed button').first().click();
    await opened.page.getByText('Copied to the clipboard.').waitFor();
    const copied = await opened.page.evaluate(clipboardText);
    assert.ok(copied.includes(`send to: 0x${'b6'.repeat(20)}`));
    await opened.page.keyboard.press('Escape');
  });

  it('shows a call that happens while it is open, and adds it to the revenue', async () => {
    const requestId = await buy(setup.testbed, 'market_report', { city: 'Wien' });
    const row = opened.page.locator('#calls tr', { hasText: requestId });
    await row.getByText('Delivered').waitFor();
    assert.match(await row.innerText(), /market_report\s+Delivered\s+http\s+\d+ ms/);
    await figure('Revenue').getByText('0.05', { exact: true }).waitFor();
  });

  it('filters by text and by outcome, and shows when nothing is left', async () => {
    const { page } = opened;
    await page.getByLabel('Filter by outcome').selectOption('Paid, not delivered');
    assert.deepEqual((await rowsOf(page, 'calls')).length, 1);
    await page.getByLabel('Filter by outcome').selectOption('Every outcome');
    await page.getByLabel('Filter by text').fill('PRICE_LIST delivered');
    assert.equal((await rowsOf(page, 'calls')).length, 2);
    await page.getByLabel('Filter by text').fill('nothing like it');
    await page.getByText('No call matches this filter.').waitFor();
    await page.getByLabel('Filter by text').fill('');
  });

  it('does not change while it is paused, and shows how much is new', async () => {
    const { page } = opened;
    await page.getByRole('button', { name: 'Pause' }).click();
    const before = await rowsOf(page, 'calls');
    await (await setup.testbed.gateway.invoke('cities', {}, { 'x-request-id': 'while-paused' })).arrayBuffer();
    await page.getByText(/paused, [1-9]\d* new or changed/).waitFor();
    assert.deepEqual(await rowsOf(page, 'calls'), before);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.locator('#calls tr', { hasText: 'while-paused' }).waitFor();
  });

  for (const { what, answer, words } of [
    {
      what: 'the store is away',
      answer: { status: 503, json: { status: 'error', code: 'STORAGE_ERROR' } },
      words: /The store is away: what is shown is what was read before\. Next try in \d seconds?\./,
    },
    {
      what: 'a proxy before the gateway limits requests',
      answer: { status: 429, json: {}, headers: { 'retry-after': '40' } },
      words: /The gateway limits requests from here\. Next try in (?:40|39) seconds\./,
    },
  ])
    it(`shows when ${what}, and goes on after "Try now"`, async () => {
      const { page } = opened;
      await page.route('**/api/events*', (route) => route.fulfill(answer));
      await page.getByText(words).waitFor();
      assert.ok((await rowsOf(page, 'calls')).length > 0, 'what was read stays');
      await page.unroute('**/api/events*');
      await page.getByRole('button', { name: 'Try now' }).click();
      await page.getByText(/^Live ·/).waitFor();
      assert.equal(await page.getByText(words).isVisible(), false);
    });

  it('sends no request while it is hidden', async () => {
    const { page, asked } = opened;
    await page.evaluate(hide, true);
    await page.getByText('Paused while hidden').waitFor();
    const before = asked.length;
    await page.evaluate(hide, true);
    assert.equal(asked.length, before);
    await page.evaluate(hide, false);
    await page.getByText(/^Live ·/).waitFor();
  });
});
