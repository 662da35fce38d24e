import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium as playwright } from 'playwright-core';
import { chromium } from '../../support/install-chromium.ts';

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
