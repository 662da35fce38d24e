import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { OPERATOR_TOKEN } from '../../support/gateway.ts';
import { type ConsolePage, openPage, setupOf } from './console-page.ts';
import { focused, focusSeen } from './in-page.js';
import { buy, event, makeCalls, oldReceipt } from './sample-calls.ts';

describe('the console by keyboard alone', () => {
  let opened: ConsolePage;
  let page: Page;
  const setup = setupOf(async (started) => {
    await makeCalls(started);
    await started.gateway.store.receipts.write([oldReceipt(1, { metadata: { refundDue: true } })]);
  });
  before(async () => {
    opened = await openPage(setup.browser, setup.testbed.gateway);
    page = opened.page;
  });
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };

  it('begins in the field of the token, and Enter opens the console', async () => {
    assert.equal(await page.evaluate(focused), 'input Operator token');
    await page.keyboard.type(OPERATOR_TOKEN);
    await press('Enter');
    await page.getByRole('heading', { name: 'Market Shop' }).waitFor();
    assert.equal(await page.evaluate(focused), 'main content');
  });

  it('goes through everything that can be operated, once, with a focus that is seen', async () => {
    const stops: string[] = [];
    await page.locator('#history[aria-busy="false"]').waitFor();
    for (let at = 0; at < 17; at += 1) {
      await press('Tab');
      stops.push(await page.evaluate(focused));
      assert.ok(await page.evaluate(focusSeen), stops.at(-1) ?? '');
    }
    assert.match(stops[0] ?? '', /^button Copy the refund facts of receipt_/);
    assert.match(stops[1] ?? '', /^button Copy the refund facts of receipt_/);
    assert.deepEqual(stops.slice(2, 16), [
      ...['button 1 hour', 'button 24 hours', 'button 7 days', 'button 30 days', 'button history-again'],
      ...[
        'button receipts-file',
        'button charts-file',
        'summary Table: Revenue TUSD · eip155:31337',
        'summary Table: Deliveries',
      ],
      ...['summary Table: Calls without a delivery', 'summary Table: Latency of deliveries ms'],
      ...['input Filter by text', 'select Filter by outcome', 'button pause'],
    ]);
    assert.match(
      stops[16] ?? '',
      /^button (?:failing_post|price_list|market_report|cities)/,
      'all the calls are one stop',
    );
  });

  it('goes from call to call with the arrows, opens one with Enter and comes back with Escape', async () => {
    const rows = await page.locator('#calls button').allInnerTexts();
    await page.locator('#calls button').first().focus();
    await press('ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowDown');
    assert.equal(await page.evaluate(focused), `button ${rows[2]}`);
    await press('Enter');
    const dialog = page.getByRole('dialog', { name: rows[2] ?? '' });
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /resource\.requested/);
    await press('Escape');
    assert.equal(await dialog.isVisible(), false);
    assert.equal(await page.evaluate(focused), `button ${rows[2]}`);
    await press('End');
    assert.equal(await page.evaluate(focused), `button ${rows.at(-1)}`);
    await press('ArrowDown', 'Home', 'ArrowUp');
    assert.equal(await page.evaluate(focused), `button ${rows[0]}`);
  });

  it('shows the events of a call in their order, with the transaction', async () => {
    await page.getByLabel('Filter by text').fill('market_report delivered');
    await page.locator('#calls button').first().focus();
    await press('Enter');
    assert.deepEqual(await page.locator('#details-events .type').allInnerTexts(), [
      'resource.requested',
      'payment.verified',
      'payment.settled',
      'backend.called',
      'resource.delivered',
    ]);
    assert.match(await page.locator('#details-facts').innerText(), /Transaction\s+0x[0-9a-f]{64}/);
    await press('Escape');
    await page.getByLabel('Filter by text').fill('');
  });

  it('keeps the focus where it is when calls come in', async () => {
    await page.locator('#calls button').nth(3).focus();
    const before = await page.evaluate(focused);
    const requestId = await buy(setup.testbed, 'price_list', {});
    await page.locator('#calls tr', { hasText: requestId }).waitFor();
    assert.equal(await page.evaluate(focused), before);
    assert.equal(await page.locator('#calls button[tabindex="0"]').count(), 1);
    assert.equal(await page.locator('#calls button:focus').getAttribute('tabindex'), '0');
  });

  it('skips to the content from the top', async () => {
    await page.getByRole('button', { name: 'Forget token' }).focus();
    await press('Shift+Tab');
    assert.equal(await page.evaluate(focused), 'a Skip to content');
    assert.equal(await page.getByText('Skip to content').isVisible(), true);
    await press('Enter');
    assert.equal(await page.evaluate(focused), 'main content');
  });

  it('announces changes in a polite live region', async () => {
    const status = page.getByRole('status');
    assert.equal(await status.getAttribute('aria-live'), 'polite');
    await setup.testbed.gateway.store.receipts.write([oldReceipt(0x3e8, { metadata: { refundDue: true } }, -1_000)]);
    await status.getByText('3 payments not delivered').waitFor();
    assert.match(await page.title(), /^\(3\) Market Shop/);
  });

  it('tables stay tables where they are laid out as lists', async () => {
    await page.setViewportSize({ width: 360, height: 760 });
    for (const name of ['Paid, not delivered', 'Live calls', 'Revenue by resource']) {
      const table = page.getByRole('table', { name });
      // The role is explicit: not every browser keeps it for a table that is laid out as blocks.
      assert.equal(await table.getAttribute('role'), 'table', name);
      assert.ok((await table.getByRole('row').count()) > 1, name);
      assert.ok((await table.getByRole('columnheader', { includeHidden: true }).count()) > 3, name);
      assert.ok((await table.getByRole('cell').count()) > 3, name);
    }
    await page.setViewportSize({ width: 1280, height: 760 });
  });

  it('two hundred rows are shown, and the others are found', async () => {
    const many = Array.from({ length: 250 }, (_, at) =>
      event('resource.requested', { requestId: `req-many-${at}`, resourceId: 'cities' }),
    );
    await setup.testbed.gateway.store.feed.append(many);
    await page.getByText(/^newest 200 of 2\d\d$/).waitFor();
    assert.equal(await page.locator('#calls tr').count(), 200);
    await page.getByLabel('Filter by text').fill('req-many-0');
    assert.equal(await page.locator('#calls tr').count(), 1);
    await page.getByLabel('Filter by text').fill('');
  });
});
