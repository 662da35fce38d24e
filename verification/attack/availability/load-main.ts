/**
 * The load generator, a process of its own: takes a LoadTask as message, reports when it is
 * prepared, begins at `go` and answers with a LoadReport. Ends with its parent.
 */
import { once } from 'node:events';
import type { LoadReport, LoadTask, LoadWord } from './load-task.ts';
import { type NextCall, writeCalls } from './questions.ts';
import { Tally } from './tally.ts';
import { type WireAnswer, WireClient } from './wire-client.ts';

/** How often calls that are due are sent, milliseconds; they are timed from when they were due. */
const PACE_MS = 1;
const CONNECT_AT_ONCE = 32;

class Run {
  readonly #task: LoadTask;
  readonly #nextCall: NextCall;
  readonly #tally = new Tally();
  readonly #idle: WireClient[] = [];
  readonly #clients: WireClient[];
  /** When calls were due that wait for a connection, oldest first from `#head` on. */
  #waiting: number[] = [];
  #head = 0;

  constructor(task: LoadTask, nextCall: NextCall) {
    this.#task = task;
    this.#nextCall = nextCall;
    const { hostname, port } = new URL(task.origin);
    this.#clients = Array.from({ length: task.connections }, () => new WireClient(hostname, Number(port)));
  }

  async connect(): Promise<void> {
    // A few at a time: a burst of hundreds overflows the listener's backlog, and the kernel tries
    // again a second later.
    for (let at = 0; at < this.#clients.length; at += CONNECT_AT_ONCE)
      await Promise.all(this.#clients.slice(at, at + CONNECT_AT_ONCE).map((client) => client.connected()));
  }

  async report(): Promise<LoadReport> {
    const startedAt = performance.now();
    await (this.#task.shape.kind === 'closed' ? this.#closed(startedAt) : this.#open(startedAt, this.#task.shape));
    const seconds = (performance.now() - startedAt) / 1_000;
    for (const client of this.#clients) client.close();
    return {
      seconds,
      ...this.#tally.report(),
      unsent: this.#waiting.length - this.#head,
      reopened: this.#clients.reduce((sum, { opened }) => sum + Math.max(0, opened - 1), 0),
    };
  }

  #closed(startedAt: number): Promise<void> {
    const ends = startedAt + this.#task.seconds * 1_000;
    const lane = (client: WireClient): Promise<void> =>
      new Promise((resolve) => {
        const next = (): void => {
          const now = performance.now();
          if (now >= ends || !this.#ask(client, now, next)) resolve();
        };
        next();
      });
    return Promise.all(this.#clients.map(lane)).then(() => undefined);
  }

  #open(startedAt: number, { perSecond }: { readonly perSecond: number }): Promise<void> {
    const calls = Math.floor(perSecond * this.#task.seconds);
    const everyMs = 1_000 / perSecond;
    const ends = startedAt + this.#task.seconds * 1_000;
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
      const asked = this.#ask(client, dueAt, () => {
        this.#idle.push(client);
        if (this.#head < this.#waiting.length) this.#send();
      });
      if (!asked) this.#idle.push(client);
    }
    if (this.#head > 10_000) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
  }

  /**
   * Sends the next call. False: its proof is missing, a fault of this program that counts as wrong.
   */
  #ask(client: WireClient, since: number, then: () => void): boolean {
    const call = this.#nextCall();
    if (call === undefined) {
      this.#tally.wrong('no proof is left');
      return false;
    }
    const { kind, request } = call;
    this.#tally.sent(kind);
    client.ask(request, (answer: WireAnswer | Error) => {
      this.#tally.answered(kind, answer, performance.now() - since);
      then();
    });
    return true;
  }
}

function say(word: LoadWord): void {
  process.send?.(word);
}

async function follow(task: LoadTask): Promise<void> {
  const run = new Run(task, await writeCalls(task));
  await run.connect();
  const go = once(process, 'message');
  say({ word: 'prepared' });
  await go;
  say({ word: 'done', report: await run.report() });
}

process.on('message', (message: LoadTask | 'go') => {
  if (message === 'go') return;
  follow(message).catch((error: unknown) => say({ word: 'failed', why: String(error) }));
});
process.on('disconnect', () => process.exit(0));
