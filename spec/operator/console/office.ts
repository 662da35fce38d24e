import type { Browser } from 'playwright-core';
import { openSeller, type Seller } from '../../support/seller.ts';
import { openBrowser } from './browser.ts';

/** A shop with what an operator finds in it, and a browser to look at it. */
export interface Office {
  readonly seller: Seller;
  readonly browser: Browser;
  close(): Promise<void>;
}

/**
 * `happened`: what agents did in the shop before. What had started is ended again when a later part
 * fails.
 */
export async function openOffice(happened: (seller: Seller) => Promise<void>): Promise<Office> {
  const seller = await openSeller();
  try {
    await happened(seller);
    const { browser, close } = await openBrowser();
    return {
      seller,
      browser,
      async close() {
        try {
          await close();
        } finally {
          await seller.close();
        }
      },
    };
  } catch (thrown) {
    await seller.close();
    throw thrown;
  }
}
