/**
 * `make pictures`: writes docs/pictures/console.png from the real console, with calls of this
 * moment and receipts of the month before.
 */

import { join } from 'node:path';
import { openConsole, openSetup } from './console-page.ts';
import { makeCalls, oldReceipt } from './sample-calls.ts';

const PICTURE = join(import.meta.dirname, '../../../docs/pictures/console.png');
const WINDOW = { width: 1200, height: 800 };
const HOUR_MS = 3_600_000;
/** Sold before the calls of this moment, so that what is drawn over time has something to show. */
const SOLD = 90;
const RESOURCES = ['market_report', 'market_report', 'price_list', 'archive'];

await using ends = new AsyncDisposableStack();
const { testbed, browser } = await openSetup(ends, async (started) => {
  await makeCalls(started);
  const sold = Array.from({ length: SOLD }, (_, number) => {
    const ago = (number + 1) * 8 * HOUR_MS - (number % 5) * HOUR_MS;
    const deliveredAt = new Date(Date.now() - ago).toISOString();
    return oldReceipt(
      number + 10,
      {
        resourceId: RESOURCES[number % RESOURCES.length] ?? 'archive',
        delivered: true,
        deliveredAt,
        backendStatus: 200,
        durationMs: 120 + ((number * 37) % 400),
      },
      ago,
    );
  });
  await started.gateway.store.receipts.write([
    ...sold,
    oldReceipt(1, { metadata: { refundDue: true, backendErrorCode: 'BACKEND_ERROR' } }),
    oldReceipt(2, { metadata: { answerKept: true } }, HOUR_MS),
  ]);
});
const { page } = await openConsole(browser, testbed.gateway, { colorScheme: 'light', viewport: WINDOW });
await page.locator('#calls tr').first().waitFor();
await page.locator('#owed tr').first().waitFor();
await page.screenshot({ path: PICTURE });
