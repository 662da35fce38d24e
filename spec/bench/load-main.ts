/** The load generator: takes a LoadOrder as message, keeps its connections busy, answers with a LoadReport. Ends with its parent. */
import { type Dispatcher, Pool } from 'undici';
import type { LoadOrder, LoadReport } from './load.ts';
import { percentile } from './numbers.ts';

/** Most requests of one order; also the room for their times. */
const MAX_REQUESTS = 2_000_000;
const HEADERS = { 'content-type': 'application/json', accept: 'application/json', 'user-agent': 'bench/1' };

const times = new Float64Array(MAX_REQUESTS);

/** One connection's worth of requests, the next one sent when the last one is answered. */
class Lane implements Dispatcher.DispatchHandler {
  readonly #round: Round;
  #sentAt = 0;
  #status = 0;

  constructor(round: Round) {
    this.#round = round;
  }

  next(): void {
    const round = this.#round;
    if (round.over()) {
      round.leave();
      return;
    }
    this.#sentAt = performance.now();
    round.pool.dispatch(round.request, this);
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(): void {}

  onResponseEnd(): void {
    this.#round.count(performance.now() - this.#sentAt, this.#status);
    this.next();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#round.fail(error.message);
    this.next();
  }
}

/** The lanes of one order, and what they counted. */
class Round {
  readonly pool: Pool;
  readonly request: Dispatcher.DispatchOptions;
  readonly #order: LoadOrder;
  readonly #ends: number;
  readonly #done = Promise.withResolvers<void>();
  #running: number;
  #requests = 0;
  #failure: string | undefined;

  constructor(pool: Pool, order: LoadOrder) {
    this.pool = pool;
    this.request = { method: 'POST', path: order.path, headers: HEADERS, body: order.body };
    this.#order = order;
    this.#running = order.connections;
    this.#ends = performance.now() + order.seconds * 1_000;
  }

  over(): boolean {
    return this.#failure !== undefined || this.#requests >= MAX_REQUESTS || performance.now() >= this.#ends;
  }

  count(ms: number, status: number): void {
    if (status !== this.#order.expect) this.fail(`answered ${status}, not ${this.#order.expect}`);
    else times[this.#requests++] = ms;
  }

  fail(why: string): void {
    this.#failure ??= `${why} (after ${this.#requests} good answers)`;
  }

  leave(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#done.resolve();
  }

  async report(): Promise<LoadReport> {
    const startedAt = performance.now();
    for (let lane = 0; lane < this.#order.connections; lane += 1) new Lane(this).next();
    await this.#done.promise;
    const elapsedMs = performance.now() - startedAt;
    const sorted = times.subarray(0, this.#requests).toSorted();
    const [p50Ms, p99Ms] = [percentile(sorted, 0.5), percentile(sorted, 0.99)];
    return { requests: this.#requests, elapsedMs, p50Ms, p99Ms, failure: this.#failure };
  }
}

let open: { readonly origin: string; readonly pool: Pool } | undefined;

/** Connections are kept from one order to the next of the same contestant: what is measured is requests, not connecting. */
async function poolFor({ origin, connections }: LoadOrder): Promise<Pool> {
  if (open?.origin === origin) return open.pool;
  await open?.pool.destroy();
  const pool = new Pool(origin, { connections, pipelining: 1 });
  open = { origin, pool };
  return pool;
}

process.on('message', async (order: LoadOrder) => {
  const pool = await poolFor(order);
  process.send?.(await new Round(pool, order).report());
});
process.on('disconnect', () => process.exit(0));
