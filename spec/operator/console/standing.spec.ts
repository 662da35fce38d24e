import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { type ConsolePage, openConsole, rowsOf, setupOf } from './console-page.ts';
import { faintTexts } from './in-page.js';
import { oldReceipt } from './sample-calls.ts';

/** Contrast that WCAG 2 AA asks of text. */
const LEAST_CONTRAST = 4.5;
const HOUR_MS = 3_600_000;

describe('the present state on the console', () => {
  let opened: ConsolePage;
  const setup = setupOf(async (started) => {
    const metadata = { answerKept: true } as const;
    await started.gateway.store.receipts.write([
      oldReceipt(1, { metadata, resourceId: 'over' }, 25 * HOUR_MS),
      oldReceipt(2, { metadata, resourceId: 'kept' }, HOUR_MS),
      oldReceipt(3, { metadata: { backendErrorCode: 'BACKEND_ERROR' }, resourceId: 'failed' }, HOUR_MS),
    ]);
  });
  before(async () => {
    opened = await openConsole(setup.browser, setup.testbed.gateway);
  });

  const checks = async (): Promise<readonly string[]> => {
    const texts = await opened.page.locator('#checks li').allInnerTexts();
    return texts.map((text) => text.replace(/\s+/g, ' '));
  };

  it('an answer is shown as kept for its buyer as long as it may be collected', async () => {
    const rows = await rowsOf(opened.page, 'owed');
    const shownAsKept = /Answer is kept; the buyer collects it with the same proof/;
    assert.deepEqual(
      ['over', 'kept', 'failed'].map((id) => shownAsKept.test(rows.find((row) => row.includes(id)) ?? assert.fail(id))),
      [false, true, false],
    );
  });

  it('nothing is ready while the gateway does not answer, until it does', async () => {
    const { page } = opened;
    const before = await checks();
    assert.equal(before[0], '✓ Gateway ready');
    await page.route('**/ready', (route) => route.abort());
    await page.getByText(/^The gateway does not answer\. Next try/).waitFor();
    assert.deepEqual(await checks(), [
      '? Gateway unknown',
      '? Store sqlite unknown',
      '? Backend unknown',
      '? Adapter http unknown',
      '? Payments x402 unknown',
    ]);
    const { faint } = await page.evaluate(faintTexts, LEAST_CONTRAST);
    assert.deepEqual(faint, []);
    assert.equal(await page.locator('#checks li:not([data-tone="unknown"])').count(), 0, 'no check has another colour');
    await page.unroute('**/ready');
    await page.getByRole('button', { name: 'Try now' }).click();
    await page.getByText(/^Live ·/).waitFor();
    assert.deepEqual(await checks(), before);
  });
});
