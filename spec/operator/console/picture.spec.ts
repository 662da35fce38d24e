import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { BrowserContextOptions } from 'playwright-core';
import { newCallId } from '../../../src/events/event.ts';
import { type ConsolePage, luminance, openConsole, setupOf } from './console-page.ts';
import { animationOf, background, cutTexts, faintTexts, overflow, uncovered } from './in-page.js';
import { makeCalls, oldReceipt } from './sample-calls.ts';

/** Contrast that WCAG 2 AA asks of text. */
const LEAST_CONTRAST = 4.5;

const VIEWS: readonly { readonly name: string; readonly options: BrowserContextOptions }[] = [
  { name: 'light', options: { colorScheme: 'light', viewport: { width: 1440, height: 1000 } } },
  { name: 'dark', options: { colorScheme: 'dark', viewport: { width: 1440, height: 1000 } } },
  { name: 'a tablet', options: { colorScheme: 'light', viewport: { width: 820, height: 1100 } } },
  { name: 'a phone', options: { colorScheme: 'light', viewport: { width: 360, height: 760 } } },
  { name: 'a phone, dark', options: { colorScheme: 'dark', viewport: { width: 360, height: 760 } } },
];

describe('the picture of the console', () => {
  const setup = setupOf(async (started) => {
    await makeCalls(started);
    const long = 'a-resource-with-a-name-of-the-full-length-that-is-allowed.'.repeat(2).padEnd(128, 'x');
    await started.gateway.store.receipts.write([
      oldReceipt(1, { metadata: { refundDue: true, backendErrorCode: 'BACKEND_ERROR' } }),
      oldReceipt(2, { resourceId: long, delivered: true, deliveredAt: new Date().toISOString() }),
      oldReceipt(3, { resourceId: long }),
      oldReceipt(4, { metadata: { answerKept: true } }, 3_600_000),
    ]);
    await started.gateway.store.feed.append([
      {
        type: 'resource.requested',
        requestId: 'r'.repeat(64),
        callId: newCallId(),
        resourceId: long,
        at: new Date().toISOString(),
        adapter: 'mcp',
      },
    ]);
  });

  for (const { name, options } of VIEWS)
    describe(name, () => {
      let opened: ConsolePage;
      before(async () => {
        opened = await openConsole(setup.browser, setup.testbed.gateway, options);
      });
      after(() => opened.close());

      it('is not wider than the window, and cuts no text off', async () => {
        assert.equal(await opened.page.evaluate(overflow), 0);
        assert.deepEqual(await opened.page.evaluate(cutTexts), []);
      });

      it(`has text of a contrast of at least ${LEAST_CONTRAST}`, async () => {
        const { texts, faint } = await opened.page.evaluate(faintTexts, LEAST_CONTRAST);
        assert.ok(texts > 100, `${texts} texts`);
        assert.deepEqual(faint, []);
      });

      it('shows the revenue of the real purchases, visible and not covered', async () => {
        const value = opened.page.locator('[data-figure="Revenue"] .value');
        assert.equal(await value.innerText(), '0.06');
        assert.equal(await value.evaluate(uncovered), true);
      });

      it('shows each of its parts, on a background of its scheme', async () => {
        for (const selector of ['.bar', '#checks', '#figures', '#owed tr', '#calls tr', '#revenue tr']) {
          const { width, height } =
            (await opened.page.locator(selector).first().boundingBox()) ?? assert.fail(selector);
          assert.ok(width > 100 && height > 15, selector);
        }
        const behind = luminance(await opened.page.evaluate(background));
        if (options.colorScheme === 'dark') assert.ok(behind < 0.05, `dark, ${behind}`);
        else assert.ok(behind > 0.6, `light, ${behind}`);
      });
    });

  for (const colorScheme of ['light', 'dark'] as const)
    it(`asks for the token in ${colorScheme} with enough contrast, on a phone without scrolling`, async () => {
      const context = await setup.browser.newContext({ colorScheme, viewport: { width: 360, height: 640 } });
      const page = await context.newPage();
      await page.goto(`${setup.testbed.gateway.url}/console`);
      assert.equal(await page.evaluate(overflow), 0);
      assert.deepEqual((await page.evaluate(faintTexts, LEAST_CONTRAST)).faint, []);
      assert.equal(await page.getByRole('button', { name: 'Open console' }).evaluate(uncovered), true);
      await context.close();
    });

  it('a new call is highlighted, without motion if the reader prefers less', async () => {
    const opened = await openConsole(setup.browser, setup.testbed.gateway, { reducedMotion: 'no-preference' });
    await (await setup.testbed.gateway.invoke('cities', {}, { 'x-request-id': 'comes-in' })).arrayBuffer();
    const row = opened.page.locator('#calls tr', { hasText: 'comes-in' });
    await row.waitFor();
    assert.equal(await row.evaluate(animationOf), 'arrive');
    await opened.page.emulateMedia({ reducedMotion: 'reduce' });
    assert.equal(await row.evaluate(animationOf), 'none');
    await opened.close();
  });
});
