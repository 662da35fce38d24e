/** Reads `/metrics` of a gateway as it is now: the gateway serves one text for a second. */

import { setTimeout as delay } from 'node:timers/promises';

const LOOK_EVERY_MS = 50;
/** The last text of each gateway. A text that differs was made after it: only tests scrape here. */
const seen = new Map<string, string>();

export async function readMetrics(managementUrl: string): Promise<string> {
  for (;;) {
    const text = await (await fetch(`${managementUrl}/metrics`)).text();
    if (text !== seen.get(managementUrl)) {
      seen.set(managementUrl, text);
      return text;
    }
    await delay(LOOK_EVERY_MS);
  }
}
