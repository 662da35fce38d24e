/** Whether what passes and what is sold leave each other their share under a flood of the other. */

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Buyer, createBuyer } from '../../spec/support/buyer.ts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import type { Row } from './row.ts';

const CONNECTIONS = 400;
/** How much slower the slowest percent may be than without the flood (the goal). */
const MOST_SLOWER = 5;
/** Between two paid calls, milliseconds. */
const PAID_EVERY_MS = 100;

export interface Flooded {
  readonly baseUrl: string;
  readonly chain: ChainAccess;
}

/** The answers of one side of a run: how they were, and how long they took, milliseconds. */
interface Answers {
  readonly statuses: Readonly<Record<string, number>>;
  readonly p50: number;
  readonly p99: number;
}

/** Paid calls in place beside a flood of what passes, and the reverse. */
export async function floodRows(gateway: Flooded, seconds: number): Promise<readonly Row[]> {
  const buyer = await createBuyer(gateway.chain, 1_000_000_000n);
  await payFor(gateway, buyer, 3);
  const quiet = await payFor(gateway, buyer, seconds);
  const [passed, flooded] = await Promise.all([
    flood(`${gateway.baseUrl}/page`, CONNECTIONS, seconds + 2),
    delay(1_000).then(() => payFor(gateway, buyer, seconds)),
  ]);
  const alone = await flood(`${gateway.baseUrl}/page`, 4, seconds);
  const [challenged, beside] = await Promise.all([
    flood(`${gateway.baseUrl}/reports/Berlin`, CONNECTIONS, seconds + 2),
    delay(1_000).then(() => flood(`${gateway.baseUrl}/page`, 4, seconds)),
  ]);
  return [
    row('paid calls', quiet, `${CONNECTIONS} connections of what passes`, flooded, passed),
    row('what passes', alone, `${CONNECTIONS} connections that are answered 402`, beside, challenged),
  ];
}

function row(what: string, quiet: Answers, by: string, flooded: Answers, flood: Answers): Row {
  const lost = Object.entries(flooded.statuses).filter(([status]) => status !== '200');
  const slower = flooded.p99 / quiet.p99;
  return {
    what: `${what} beside ${by}`,
    found: `p99 ${ms(quiet.p99)} quiet, ${ms(flooded.p99)} beside it: ${slower.toFixed(1)} times; p50 ${ms(quiet.p50)}, ${ms(flooded.p50)}; answers ${JSON.stringify(flooded.statuses)}; the flood ${JSON.stringify(flood.statuses)}`,
    goal: `at most ${MOST_SLOWER} times, none lost`,
    met: slower <= MOST_SLOWER && lost.length === 0,
  };
}

function ms(time: number): string {
  return `${time.toFixed(1)} ms`;
}

/** One paid call every PAID_EVERY_MS, whether the last one is answered or not. */
async function payFor({ baseUrl }: Flooded, buyer: Buyer, seconds: number): Promise<Answers> {
  const statuses: Record<string, number> = {};
  const times: number[] = [];
  const running: Promise<void>[] = [];
  for (let index = 0; index < (seconds * 1_000) / PAID_EVERY_MS; index += 1) {
    running.push(pay(`${baseUrl}/reports/Berlin?n=${index}`, buyer, statuses, times));
    await delay(PAID_EVERY_MS);
  }
  await Promise.all(running);
  times.sort((a, b) => a - b);
  return { statuses, p50: times[times.length >> 1] ?? 0, p99: times[Math.floor(times.length * 0.99)] ?? 0 };
}

/** Only the paid request is timed: signing and the challenge are the buyer's. */
async function pay(url: string, buyer: Buyer, statuses: Record<string, number>, times: number[]): Promise<void> {
  const challenge = await fetch(url);
  const proof = await buyer.pay(((await challenge.json()) as { payment: { envelope: unknown } }).payment.envelope);
  const startedAt = performance.now();
  const answer = await fetch(url, { headers: { 'payment-signature': proof } });
  await answer.arrayBuffer();
  times.push(performance.now() - startedAt);
  statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
}

/**
 * Clients in a process of their own ask again as soon as they have an answer: GET, or POST of a
 * body.
 */
export function flood(url: string, connections: number, seconds: number, body?: string): Promise<Answers> {
  const child = spawn(
    process.execPath,
    [
      join(import.meta.dirname, 'flood-main.ts'),
      ...[url, `${connections}`, `${seconds}`, ...(body === undefined ? [] : [body])],
    ],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => resolve(JSON.parse(text) as Answers));
  });
}
