import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { EventDraft } from '../../../src/events/event.ts';
import { type ConsolePage, openConsole, setupOf } from './console-page.ts';
import { observed, overflow, reportedAll, tryCode } from './in-page.js';
import { event, oldReceipt } from './sample-calls.ts';

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
  let opened: ConsolePage;
  const setup = setupOf(async (started) => {
    const { feed, receipts } = started.gateway.store;
    const calls = HOSTILE.flatMap((text, at): readonly EventDraft[] => {
      const call = { requestId: `${text}${at}`, callId: `call_${at}`, resourceId: text, adapter: text as 'http' };
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
        const hostile = { amount: text, currency: text, network: text, payer: text, externalReference: text };
        const metadata = { backendErrorCode: text, refundDue: true } as const;
        return { ...receipt, requestId: text, resourceId: text, metadata, payment: { ...payment, ...hostile } };
      }),
    );
  });
  before(async () => {
    opened = await openConsole(setup.browser, setup.testbed.gateway, { viewport: { width: 360, height: 760 } });
  });

  it('stands on the page as text, letter for letter', async () => {
    for (const text of HOSTILE) {
      assert.ok(await opened.page.locator('#calls button').getByText(text, { exact: true }).count(), text);
      assert.ok(await opened.page.locator('#owed .id').getByText(text, { exact: true }).count(), text);
      assert.ok(await opened.page.locator('#revenue .id').getByText(text, { exact: true }).count(), text);
    }
  });

  it('stands in the details as text', async () => {
    for (const text of HOSTILE) {
      await opened.page.locator('#calls button').getByText(text, { exact: true }).click();
      const details = await opened.page.getByRole('dialog').innerText();
      assert.ok(details.split(text).length > 5, details);
      await opened.page.keyboard.press('Escape');
    }
  });

  it('stands over the charts as text, and is in no sum', async () => {
    const { page } = opened;
    await page.getByRole('button', { name: '7 days' }).click();
    await page.getByText(`In no sum: ${HOSTILE.length} payments without a readable amount.`, { exact: true }).waitFor();
    for (const text of HOSTILE)
      await page.getByRole('heading', { name: `Revenue ${text} · ${text}`, exact: true }).waitFor();
  });

  it('makes no element, asks for nothing, runs nothing, and does not widen the page', async () => {
    const { page } = opened;
    assert.equal(
      await page
        .locator(
          '#console :is(img:not([alt=""]), svg:not(.plot, .plot *), script, iframe, b), #details :is(img, svg, script, iframe, b)',
        )
        .count(),
      0,
    );
    for (const { url } of opened.asked) assert.ok(url.startsWith(`${setup.testbed.gateway.url}/`), url);
    assert.deepEqual(await page.evaluate(observed), { violations: [], hits: 0 });
    assert.equal(await page.evaluate(overflow), 0);
    assert.deepEqual(opened.errors, []);
  });

  it('could not run or be sent away even where a bug made markup or a script of it', async () => {
    const { page } = opened;
    const results = await page.evaluate(tryCode);
    assert.deepEqual(results.slice(0, 2), ['TypeError', 'TypeError'], 'trusted types');
    const reported = ['require-trusted-types-for', 'script-src', 'connect-src', 'img-src', 'form-action'];
    await page.waitForFunction(reportedAll, reported);
    assert.equal((await page.evaluate(observed)).hits, 0);
    assert.ok(!opened.page.url().includes('stolen'));
  });
});
