import { type CallKind, CallLimit, JUDGE_MS, type Standing } from '../../../src/server/limits/load-shedding.ts';

/** Work of the process, milliseconds of its core: about what profiles of the gateway show. */
const PARSE_MS = 0.012;
const REFUSE_MS = 0.02;
/** Of each turn: asking the system what is ready. */
const POLL_MS = 0.01;
/** From an answer to the next request of the same client. */
const ROUND_TRIP_MS = 0.05;

/** What one kind of call costs. */
export interface Work {
  readonly kind: CallKind;
  readonly standing?: Standing;
  /** Until it waits for something, or is answered; milliseconds of the core. */
  readonly beginMs: number;
  /** What follows: how long something else takes, and the work after it. */
  readonly pieces: readonly { readonly afterMs: number; readonly workMs: number }[];
}

/** Clients that send the next call as soon as the last one is answered. */
interface Clients {
  readonly work: Work;
  readonly count: number;
}

/** What became of the calls of some clients. */
export interface Became {
  served: number;
  refused: number;
  /** Of those served, milliseconds. */
  readonly tookMs: number[];
}

/**
 * One process with its event loop, on a clock of its own: each turn runs what is ready, then what
 * was put off to its end. Nothing but work and idle time moves the clock.
 */
export class ModelledProcess {
  readonly turnsMs: number[] = [];
  mostInFlight = 0;
  mostWaiting = 0;
  #now = 0;
  #worked = 0;
  #idleMs = 0;
  #order = 0;
  #seed = 1;
  readonly #ready: { readonly at: number; readonly order: number; readonly run: () => void }[] = [];
  #atEnd: (() => void)[] = [];
  readonly #limit: CallLimit;

  constructor(maxInFlight = 512) {
    this.#limit = new CallLimit({
      maxInFlight,
      work: () => () => undefined,
      runtime: {
        now: () => this.#now,
        worked: () => this.#worked,
        atEnd: (callback) => this.#atEnd.push(callback),
        sleep: (ms) => new Promise((wake) => this.#after(ms, wake)),
      },
    });
  }

  /** Runs for so long beside these clients; what the first `warmMs` bring is not counted. */
  async run(clients: readonly Clients[], forMs: number, warmMs = 500): Promise<readonly Became[]> {
    const all = clients.map(({ work, count }) => {
      const became: Became = { served: 0, refused: 0, tookMs: [] };
      for (let client = 0; client < count; client += 1) this.#ask(work, became, warmMs);
      return became;
    });
    let judgedAt = 0;
    let idleMs = 0;
    while (this.#now < forMs) {
      const began = this.#now;
      if (began >= judgedAt + JUDGE_MS) {
        const busy = 1 - (this.#idleMs - idleMs) / (began - judgedAt);
        [judgedAt, idleMs] = [began, this.#idleMs];
        this.#limit.judge(busy);
      }
      this.#poll();
      const due = this.#atEnd;
      this.#atEnd = [];
      for (const callback of due) callback();
      // Sleepers that are due go on.
      await undefined;
      this.turnsMs.push(this.#now - began);
      if (this.#atEnd.length === 0) this.#idle(judgedAt + JUDGE_MS);
    }
    return all;
  }

  #poll(): void {
    this.#work(POLL_MS);
    const until = this.#now;
    for (let next = this.#ready[0]; next !== undefined && next.at <= until; next = this.#ready[0]) {
      removeFirst(this.#ready);
      next.run();
    }
  }

  #idle(atMost: number): void {
    const next = Math.min(atMost, this.#ready[0]?.at ?? atMost);
    if (next <= this.#now) return;
    this.#idleMs += next - this.#now;
    this.#now = next;
  }

  #work(ms: number): void {
    this.#now += ms;
    this.#worked += ms;
  }

  #after(ms: number, run: () => void): void {
    this.#order += 1;
    insert(this.#ready, { at: this.#now + ms, order: this.#order, run });
  }

  /** Between a half and one and a half, from a fixed sequence. */
  #varied(): number {
    this.#seed = (this.#seed * 16_807) % 2_147_483_647;
    return 0.5 + this.#seed / 2_147_483_647;
  }

  #ask(work: Work, became: Became, warmMs: number): void {
    const askedAt = this.#now;
    this.#after(ROUND_TRIP_MS, () => {
      const counts = (): boolean => this.#now >= warmMs;
      this.#work(PARSE_MS);
      const again = (): void => this.#ask(work, became, warmMs);
      const begin = (): void =>
        this.#begin(work, () => {
          if (counts()) {
            became.served += 1;
            became.tookMs.push(this.#now - askedAt);
          }
          again();
        });
      const refuse = (): void => {
        this.#work(REFUSE_MS);
        if (counts()) became.refused += 1;
        again();
      };
      if (this.#limit.admits(work.kind)) begin();
      else {
        const rest = { client: '-', large: false, gone: () => false };
        if (!this.#limit.wait({ standing: 'usual', ...work, ...rest, begin, refuse })) refuse();
      }
      this.mostWaiting = Math.max(this.mostWaiting, this.#limit.waiting);
    });
  }

  #begin({ beginMs, pieces }: Work, answered: () => void): void {
    this.#work(beginMs);
    // What is answered at once was never in flight.
    if (pieces.length === 0) {
      answered();
      return;
    }
    const end = this.#limit.slots.take()();
    this.mostInFlight = Math.max(this.mostInFlight, this.#limit.slots.inFlight());
    const goOn = (index: number): void => {
      const piece = pieces[index];
      if (piece === undefined) {
        end();
        answered();
        return;
      }
      this.#after(piece.afterMs * this.#varied(), () => {
        this.#work(piece.workMs);
        goOn(index + 1);
      });
    };
    goOn(0);
  }
}

interface Due {
  readonly at: number;
  readonly order: number;
}

function before(one: Due, other: Due): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/** A binary heap: what is due first is its first item. */
function insert<T extends Due>(heap: T[], item: T): void {
  let at = heap.length;
  heap.push(item);
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !before(item, parent)) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = item;
}

function removeFirst<T extends Due>(heap: T[]): void {
  const item = heap.pop();
  if (item === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    const [one, other] = [heap[left], heap[left + 1]];
    if (one === undefined) break;
    const [least, index] = other !== undefined && before(other, one) ? [other, left + 1] : [one, left];
    if (!before(least, item)) break;
    heap[at] = least;
    at = index;
  }
  heap[at] = item;
}
