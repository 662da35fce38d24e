import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import type { EventDraft } from '../../../src/events/event.ts';
import type { Seller } from '../../support/seller.ts';
import { type Desk, openConsole } from './desk.ts';
import { heard, reportedAll, tryCode } from './in-page.js';
import { overflow } from './looks.js';
import { type Office, openOffice } from './office.ts';
import { event, oldReceipt } from './trade.ts';

const HOSTILE = [
  '<img src=x onerror="hits+=1">',
  '"><svg onload=hits+=1>',
  '<script>hits+=1</script>',
  'javascript:hits+=1',
  '\u202e<b>gnirts</b>',
  '{{constructor.constructor("hits+=1")()}}',
  '<iframe srcdoc="<script>parent.hits+=1</script>">',
];

describe('what merchants and agents write', () => {
  let seller: Seller;
  let browser: Browser;
  let desk: Desk;
  let close: Office['close'];
  before(async () => {
    ({ seller, browser, close } = await openOffice(async (opened) => {
      const { feed, receipts } = opened.shop.store;
      const calls = HOSTILE.flatMap((text, at): readonly EventDraft[] => {
        const call = { requestId: `${text}${at}`, resourceId: text, adapter: text as 'http' };
        const failure = { status: 'error', data: { code: text, reason: text, [text]: text } } as const;
        return [
          event('resource.requested', call),
          event('payment.settled', { ...call, data: { transaction: text, payer: text } }),
          event('backend.failed', { ...call, ...failure }),
        ];
      });
      await feed.append(calls);
      await receipts.write(
        HOSTILE.map((text, at) => {
          const { payment, ...receipt } = oldReceipt(at);
          assert.ok(payment);
          const said = { amount: text, currency: text, network: text, payer: text, externalReference: text };
          const metadata = { backendErrorCode: text, refundDue: true } as const;
          return { ...receipt, requestId: text, resourceId: text, metadata, payment: { ...payment, ...said } };
        }),
      );
    }));
    desk = await openConsole(browser, seller.shop, { viewport: { width: 360, height: 760 } });
  });
  after(() => close());

  it('stands on the page as text, letter for letter', async () => {
    for (const text of HOSTILE) {
      assert.ok(await desk.page.locator('#calls button').getByText(text, { exact: true }).count(), text);
      assert.ok(await desk.page.locator('#owed .id').getByText(text, { exact: true }).count(), text);
      assert.ok(await desk.page.locator('#revenue .id').getByText(text, { exact: true }).count(), text);
    }
  });

  it('stands in the details as text', async () => {
    for (const text of HOSTILE) {
      await desk.page.locator('#calls button').getByText(text, { exact: true }).click();
      const details = await desk.page.getByRole('dialog').innerText();
      assert.ok(details.split(text).length > 5, details);
      await desk.page.keyboard.press('Escape');
    }
  });

  it('makes no element, asks for nothing, runs nothing, and does not widen the page', async () => {
    const { page } = desk;
    assert.equal(
      await page
        .locator('#console :is(img:not([alt=""]), svg, script, iframe, b), #details :is(img, svg, script, iframe, b)')
        .count(),
      0,
    );
    for (const { url } of desk.asked) assert.ok(url.startsWith(`${seller.shop.url}/`), url);
    assert.deepEqual(await page.evaluate(heard), { violations: [], hits: 0 });
    assert.equal(await page.evaluate(overflow), 0);
    assert.deepEqual(desk.errors, []);
  });

  it('could not run or be sent away even where a bug made markup or a script of it', async () => {
    const { page } = desk;
    const results = await page.evaluate(tryCode);
    assert.deepEqual(results.slice(0, 2), ['TypeError', 'TypeError'], 'trusted types');
    const reported = ['require-trusted-types-for', 'script-src', 'connect-src', 'img-src', 'form-action'];
    await page.waitForFunction(reportedAll, reported);
    assert.equal((await page.evaluate(heard)).hits, 0);
    assert.ok(!desk.page.url().includes('stolen'));
  });
});
