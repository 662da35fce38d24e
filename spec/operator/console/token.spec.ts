import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OPERATOR_TOKEN } from '../../support/gateway.ts';
import { openConsole, openPage, setupOf, signIn } from './console-page.ts';
import { everythingKept, leave } from './in-page.js';
import { makeCalls, oldReceipt } from './sample-calls.ts';

describe('the token of the console', () => {
  let undelivered: string;
  const setup = setupOf(async (started) => {
    ({ undelivered } = await makeCalls(started));
    await started.gateway.store.receipts.write([oldReceipt(1, { metadata: { refundDue: true } })]);
  });

  it('is asked for; the page shows when it is wrong, and opens with the right one', async () => {
    const other = await openPage(setup.browser, setup.testbed.gateway);
    const { page } = other;
    assert.equal(await page.getByRole('heading', { name: 'Market Shop' }).isVisible(), false);
    for (const [token, words] of [
      ['wrong-token', 'The gateway rejected this token.'],
      ['two words', 'A token is 1 to 512 visible ASCII characters without spaces.'],
      ['', 'A token is 1 to 512 visible ASCII characters without spaces.'],
    ] as const) {
      await page.getByLabel('Operator token').fill(token);
      await page.keyboard.press('Enter');
      await page.getByRole('alert').getByText(words).waitFor();
      assert.equal(await page.getByLabel('Operator token').inputValue(), '');
    }
    await signIn(page);
    await other.close();
  });

  it('is sent once each time it is typed; after too many wrong ones the page shows the time to wait', async () => {
    const other = await openPage(setup.browser, setup.testbed.gateway);
    const { page } = other;
    const limited = { status: 'error', code: 'RATE_LIMITED' };
    await page.route('**/api/events*', (route) =>
      route.fulfill({ status: 429, json: limited, headers: { 'retry-after': '42' } }),
    );
    const before = other.asked.length;
    await page.getByLabel('Operator token').fill('wrong-token');
    await page.keyboard.press('Enter');
    await page
      .getByRole('alert')
      .getByText('Too many wrong tokens from here; wait 42 s. The right one still works.')
      .waitFor();
    assert.equal(other.asked.slice(before).filter(({ authorization }) => authorization !== undefined).length, 1);
    await page.unroute('**/api/events*');
    await signIn(page);
    await other.close();
  });

  it('stays out of the address, the storage and the document', async () => {
    const opened = await openConsole(setup.browser, setup.testbed.gateway);
    const kept = await opened.page.evaluate(everythingKept);
    assert.ok(kept.includes('Market Shop'), 'it looked at the page');
    assert.ok(!kept.includes(OPERATOR_TOKEN));
    assert.deepEqual(await opened.page.context().cookies(), []);
    for (const { url, authorization } of opened.asked) {
      assert.ok(!url.includes(OPERATOR_TOKEN));
      assert.equal(
        authorization,
        url.includes('/api/events') || url.includes('/api/receipts') ? `Bearer ${OPERATOR_TOKEN}` : undefined,
      );
    }
    await opened.close();
  });

  it('is forgotten with everything that was read with it', async () => {
    const other = await openConsole(setup.browser, setup.testbed.gateway);
    await other.page.getByRole('button', { name: 'Forget token' }).click();
    await other.page.getByRole('heading', { name: 'Operator console' }).waitFor();
    const kept = await other.page.evaluate(everythingKept);
    for (const secret of [OPERATOR_TOKEN, undelivered, 'market_report', 'req-old-1'])
      assert.ok(!kept.includes(secret), secret);
    await signIn(other.page);
    await other.page.evaluate(leave);
    await other.page.getByLabel('Operator token').waitFor();
    assert.ok(
      !(await other.page.evaluate(everythingKept)).includes(undelivered),
      'a page that is left, and may come back',
    );
    await other.close();
  });
});
