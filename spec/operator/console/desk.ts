import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { OPERATOR_TOKEN, type Shop } from '../../support/shop.ts';
import { listen } from './in-page.js';

/** An operator's page, and what it asked for. */
export interface Desk {
  readonly page: Page;
  /** Every address that the page asked for, and how often it had the token with it. */
  readonly asked: readonly { readonly url: string; readonly authorization: string | undefined }[];
  /** What the page wrote into the browser's log as an error, or threw. */
  readonly errors: readonly string[];
  close(): Promise<void>;
}

/** Longest wait for something to appear: the console looks every 2 s. */
const APPEARS_MS = 10_000;

/** Opens the console before the token is given. */
export async function openDesk(
  browser: Browser,
  shop: Pick<Shop, 'url'>,
  options: BrowserContextOptions = {},
): Promise<Desk> {
  const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', ...options });
  context.setDefaultTimeout(APPEARS_MS);
  const page = await context.newPage();
  const asked: { url: string; authorization: string | undefined }[] = [];
  const errors: string[] = [];
  page.on('request', (request) =>
    asked.push({ url: request.url(), authorization: request.headers()['authorization'] }),
  );
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.addInitScript(listen);
  await page.goto(`${shop.url}/console`);
  return { page, asked, errors, close: () => context.close() };
}

/** Opens the console and signs in. */
export async function openConsole(
  browser: Browser,
  shop: Pick<Shop, 'url'>,
  options: BrowserContextOptions = {},
): Promise<Desk> {
  const desk = await openDesk(browser, shop, options);
  await signIn(desk.page);
  return desk;
}

/** Types a token and waits for the shop's name. */
export async function signIn(page: Page, token = OPERATOR_TOKEN): Promise<void> {
  await page.getByLabel('Operator token').fill(token);
  await page.getByRole('button', { name: 'Open console' }).click();
  await page.getByRole('heading', { name: 'Market Shop' }).waitFor();
}

/** The rows of one of the tables, as texts. */
export async function rowsOf(page: Page, table: 'owed' | 'calls' | 'revenue'): Promise<readonly string[]> {
  return page.locator(`#${table} tr`).allInnerTexts();
}
