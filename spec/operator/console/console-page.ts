import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { type Browser, type BrowserContextOptions, type Page, chromium as playwright } from 'playwright-core';
import { OPERATOR_TOKEN, type TestGateway } from '../../support/gateway.ts';
import { chromium } from '../../support/install-chromium.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { listen } from './in-page.js';

/** A gateway with calls, and a browser. */
export interface ConsoleSetup {
  readonly testbed: Testbed;
  readonly browser: Browser;
}

/** `prepare`: makes the calls that the console shows. */
export async function openSetup(
  ends: AsyncDisposableStack,
  prepare: (testbed: Testbed) => Promise<void>,
): Promise<ConsoleSetup> {
  const testbed = ends.adopt(await openTestbed(), (one) => one.close());
  await prepare(testbed);
  const { browser } = ends.adopt(await openBrowser(), (one) => one.close());
  return { testbed, browser };
}

/** The same, opened before the tests of a suite and closed behind them. */
export function setupOf(prepare: (testbed: Testbed) => Promise<void>): ConsoleSetup {
  const ends = new AsyncDisposableStack();
  let opened: ConsoleSetup | undefined;
  before(async () => {
    opened = await openSetup(ends, prepare);
  });
  after(() => ends.disposeAsync());
  const running = () => opened ?? assert.fail('the setup opens before the tests');
  return {
    get testbed() {
      return running().testbed;
    },
    get browser() {
      return running().browser;
    },
  };
}

/** An open console, and its requests. */
export interface ConsolePage {
  readonly page: Page;
  /** Every request of the page, and its token. */
  readonly asked: readonly { readonly url: string; readonly authorization: string | undefined }[];
  /** Errors that the page threw or logged. */
  readonly errors: readonly string[];
  close(): Promise<void>;
}

/** Longest wait for an element: the console looks every 2 s. */
const APPEARS_MS = 10_000;

/** Opens the console before the token is given. */
export async function openPage(
  browser: Browser,
  gateway: Pick<TestGateway, 'url'>,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
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
  await page.goto(`${gateway.url}/console`);
  return { page, asked, errors, close: () => context.close() };
}

/** Opens the console and signs in. */
export async function openConsole(
  browser: Browser,
  gateway: Pick<TestGateway, 'url'>,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const opened = await openPage(browser, gateway, options);
  await signIn(opened.page);
  return opened;
}

/** Types a token and waits for the merchant's name. */
export async function signIn(page: Page, token = OPERATOR_TOKEN): Promise<void> {
  await page.getByLabel('Operator token').fill(token);
  await page.getByRole('button', { name: 'Open console' }).click();
  await page.getByRole('heading', { name: 'Market Shop' }).waitFor();
}

/** The rows of one of the tables, as texts. */
export async function rowsOf(page: Page, table: 'owed' | 'calls' | 'revenue'): Promise<readonly string[]> {
  return page.locator(`#${table} tr`).allInnerTexts();
}

/** A headless Chromium without requests of its own; its profile is in a folder of its own. */
const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
];

/** Opens one. `close` ends it and removes what it wrote. */
export async function openBrowser(): Promise<{ readonly browser: Browser; close(): Promise<void> }> {
  const { program, env } = await chromium();
  const home = mkdtempSync(join(tmpdir(), 'console-'));
  const browser = await playwright.launch({
    executablePath: program,
    args: FLAGS,
    // The profile goes there too: playwright makes a temporary one of its own for each browser.
    env: { ...env, PATH: process.env['PATH'] ?? '', HOME: home, TMPDIR: home },
  });
  return {
    browser,
    async close() {
      await browser.close();
      rmSync(home, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** The relative luminance of WCAG 2 of an opaque colour, as browsers write one. */
export function luminance(color: string): number {
  const parts = /^rgb\((\d+), (\d+), (\d+)\)$/.exec(color)?.slice(1) ?? assert.fail(color);
  const [red = 0, green = 0, blue = 0] = parts.map((value) => {
    const part = Number(value) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
