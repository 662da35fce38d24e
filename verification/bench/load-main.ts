/**
 * The load generator: takes a LoadTask as message, keeps its connections busy, answers with a
 * LoadReport. Ends with its parent.
 */
import { type Dispatcher, Pool } from 'undici';
import type { LoadReport, LoadTask } from './load.ts';
import { percentile } from './numbers.ts';

/** Most requests of one task; also the room for their times. */
const MAX_REQUESTS = 2_000_000;
/** How much of a wrong answer is printed, characters. */
const SHOWN_CHARS = 300;

const times = new Float64Array(MAX_REQUESTS);

/** The requests of one connection, each sent after the answer to the last one. */
class Lane implements Dispatcher.DispatchHandler {
  readonly #round: Round;
  readonly #chunks: Buffer[] = [];
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
    this.#chunks.length = 0;
    this.#sentAt = performance.now();
    round.pool.dispatch(round.request, this);
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const ms = performance.now() - this.#sentAt;
    const [first, second] = this.#chunks;
    // Most answers are one chunk, which is read without a copy.
    const body = first === undefined || second !== undefined ? Buffer.concat(this.#chunks) : first;
    this.#round.count(ms, this.#status, body);
    this.next();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#round.fail(error.message);
    this.next();
  }
}

/** The lanes of one task, and their counts. */
class Round {
  readonly pool: Pool;
  readonly request: Dispatcher.DispatchOptions;
  readonly #task: LoadTask;
  readonly #holds: Buffer;
  readonly #ends: number;
  readonly #done = Promise.withResolvers<void>();
  #running: number;
  #requests = 0;
  #failure: string | undefined;

  constructor(pool: Pool, task: LoadTask) {
    this.pool = pool;
    const { path, headers, body, holds } = task.question;
    this.request = { method: 'POST', path, headers, body };
    this.#task = task;
    this.#holds = Buffer.from(holds);
    this.#running = task.connections;
    this.#ends = performance.now() + task.seconds * 1_000;
  }

  over(): boolean {
    return this.#failure !== undefined || this.#requests >= MAX_REQUESTS || performance.now() >= this.#ends;
  }

  count(ms: number, status: number, body: Buffer): void {
    const { expect, holds } = this.#task.question;
    if (status !== expect) this.fail(`answered ${status}, not ${expect}`);
    else if (!body.includes(this.#holds))
      this.fail(`answered without ${JSON.stringify(holds)}: ${body.toString('utf8', 0, SHOWN_CHARS)}`);
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
    for (let lane = 0; lane < this.#task.connections; lane += 1) new Lane(this).next();
    await this.#done.promise;
    const elapsedMs = performance.now() - startedAt;
    const sorted = times.subarray(0, this.#requests).toSorted();
    const [p50Ms, p99Ms] = [percentile(sorted, 0.5), percentile(sorted, 0.99)];
    return { requests: this.#requests, elapsedMs, p50Ms, p99Ms, failure: this.#failure };
  }
}

let open: { readonly origin: string; readonly pool: Pool } | undefined;

/**
 * Connections are kept between tasks of the same contestant, so that connecting is not measured.
 */
async function poolFor({ origin, connections }: LoadTask): Promise<Pool> {
  if (open?.origin === origin) return open.pool;
  await open?.pool.destroy();
  const pool = new Pool(origin, { connections, pipelining: 1 });
  open = { origin, pool };
  return pool;
}

process.on('message', async (task: LoadTask) => {
  const pool = await poolFor(task);
  process.send?.(await new Round(pool, task).report());
});
process.on('disconnect', () => process.exit(0));
