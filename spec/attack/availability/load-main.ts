/** The load generator, a process of its own: takes a LoadOrder as message, answers with a LoadReport. Ends with its parent. */
import { percentile } from '../../bench/numbers.ts';
import type { LoadOrder, LoadReport } from './load-order.ts';
import { postOf, type WireAnswer, WireClient } from './wire-client.ts';

/** Room for the times of one order. */
const MAX_CALLS = 4_000_000;
/** How often calls that are due are sent, milliseconds; they are timed from when they were due. */
const PACE_MS = 1;
const CONNECT_AT_ONCE = 32;

const goodMs = new Float64Array(MAX_CALLS);
const busyMs = new Float64Array(MAX_CALLS);

class Run {
  readonly #order: LoadOrder;
  readonly #request: Buffer;
  readonly #idle: WireClient[] = [];
  readonly #clients: WireClient[];
  /** When calls were due that wait for a connection, oldest first from `#head` on. */
  #waiting: number[] = [];
  #head = 0;
  #good = 0;
  #busy = 0;
  #wrong = 0;
  #wrongest: string | undefined;

  constructor(order: LoadOrder) {
    this.#order = order;
    this.#request = postOf(order.path, order.body);
    const { hostname, port } = new URL(order.origin);
    this.#clients = Array.from({ length: order.connections }, () => new WireClient(hostname, Number(port)));
  }

  async report(): Promise<LoadReport> {
    // A few at a time: a burst of hundreds overflows the listener's backlog, and the kernel tries again a second later.
    for (let at = 0; at < this.#clients.length; at += CONNECT_AT_ONCE)
      await Promise.all(this.#clients.slice(at, at + CONNECT_AT_ONCE).map((client) => client.connected()));
    const startedAt = performance.now();
    await (this.#order.shape.kind === 'closed' ? this.#closed(startedAt) : this.#open(startedAt, this.#order.shape));
    const seconds = (performance.now() - startedAt) / 1_000;
    for (const client of this.#clients) client.close();
    const good = goodMs.subarray(0, this.#good).toSorted();
    const busy = busyMs.subarray(0, this.#busy).toSorted();
    return {
      seconds,
      good: this.#good,
      busy: this.#busy,
      wrong: this.#wrong,
      wrongest: this.#wrongest,
      unsent: this.#waiting.length - this.#head,
      reopened: this.#clients.reduce((sum, { opened }) => sum + Math.max(0, opened - 1), 0),
      p50Ms: percentile(good, 0.5),
      p99Ms: percentile(good, 0.99),
      busyP99Ms: percentile(busy, 0.99),
    };
  }

  #closed(startedAt: number): Promise<void> {
    const ends = startedAt + this.#order.seconds * 1_000;
    const lane = (client: WireClient): Promise<void> =>
      new Promise((resolve) => {
        const next = (): void => {
          const now = performance.now();
          if (now >= ends) {
            resolve();
            return;
          }
          client.ask(this.#request, (answer) => {
            this.#count(answer, now);
            next();
          });
        };
        next();
      });
    return Promise.all(this.#clients.map(lane)).then(() => undefined);
  }

  #open(startedAt: number, { perSecond }: { readonly perSecond: number }): Promise<void> {
    const calls = Math.floor(perSecond * this.#order.seconds);
    const everyMs = 1_000 / perSecond;
    const ends = startedAt + this.#order.seconds * 1_000;
    let due = 0;
    this.#idle.push(...this.#clients);
    return new Promise((resolve) => {
      const pace = setInterval(() => {
        const now = performance.now();
        for (; due < calls && startedAt + due * everyMs <= now; due += 1) this.#waiting.push(startedAt + due * everyMs);
        this.#send();
        if (now < ends) return;
        clearInterval(pace);
        resolve();
      }, PACE_MS);
    });
  }

  #send(): void {
    while (this.#head < this.#waiting.length) {
      const client = this.#idle.pop();
      if (client === undefined) break;
      const dueAt = this.#waiting[this.#head] ?? 0;
      this.#head += 1;
      client.ask(this.#request, (answer) => {
        this.#count(answer, dueAt);
        this.#idle.push(client);
        if (this.#head < this.#waiting.length) this.#send();
      });
    }
    if (this.#head > 10_000) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
  }

  #count(answer: WireAnswer | Error, since: number): void {
    const ms = performance.now() - since;
    if (answer instanceof Error) this.#isWrong(answer.message);
    else if (answer.status === 200) goodMs[this.#good++] = ms;
    else if (answer.status === 503 && answer.head.includes('\r\nretry-after: 1')) busyMs[this.#busy++] = ms;
    else this.#isWrong(answer.head);
  }

  #isWrong(what: string): void {
    this.#wrong += 1;
    this.#wrongest ??= what;
  }
}

process.on('message', async (order: LoadOrder) => {
  process.send?.(await new Run(order).report());
});
process.on('disconnect', () => process.exit(0));
