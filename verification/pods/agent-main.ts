/**
 * An agent in a network namespace of its own: reads one request a line as JSON, and writes what
 * came of it, one line each.
 */

import { createInterface } from 'node:readline';

interface Asked {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Longest wait for an answer, milliseconds. */
const PATIENCE_MS = 20_000;

for await (const line of createInterface({ input: process.stdin })) {
  const { url, ...init } = JSON.parse(line) as Asked;
  const told = await fetch(url, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) }).then(
    async (answer) => ({ status: answer.status, text: await answer.text() }),
    (error: Error & { readonly cause?: { readonly code?: string } }) => ({ failed: error.cause?.code ?? error.name }),
  );
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
