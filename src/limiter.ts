/** The one limiter: a bound, a bounded wait, and turns among waiting kinds and clients. */

import { LinkedList, type Place } from './linked-list.ts';
import { REAL_TIME, type Time } from './time/time.ts';

/** Entrants that one turn of the event loop refuses: 1,000 would take some 20 ms. */
const REFUSALS = 64;
/** Every fourth start of a kind tries its first rank last, so that the second never starves. */
const OTHER_EVERY = 4;
/** The name of a kind, a rank or a client where none is given. */
const ANY = '';
const NONE: readonly string[] = [];

/**
 * Places that one holder gets. `share`: one more while it holds fewer than are free, so one alone
 * gets half, two a third each, and only a holder without a place gets the last one.
 */
type Each = number | 'share' | ((holder: string) => number);

/** Places that holders share, as client networks or payers. */
export class Places {
  readonly #most: () => number;
  readonly #each: Each;
  readonly #held = new Counts();
  #taken = 0;

  /** `most`: places of all holders; a function is called at each use, as its value may change. */
  constructor(most: number | (() => number), each: Each = Number.POSITIVE_INFINITY) {
    this.#most = typeof most === 'number' ? () => most : most;
    this.#each = each;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Whether `size` more places are free. A size beyond the bound gets all places, alone. */
  hasRoom(size = 1): boolean {
    const most = this.#most();
    return this.#taken + size <= most || (this.#taken === 0 && most > 0);
  }

  /** Whether each holder has less than it may have, once `freed` places are given back. */
  hasShare(holders: readonly string[], freed = 0): boolean {
    const each = this.#each;
    const bound = each === 'share' ? this.#most() - this.#taken + freed : each;
    return holders.every((holder) => this.#held.of(holder) < (typeof bound === 'number' ? bound : bound(holder)));
  }

  /** Takes places until `giveBack`. False: there are none, or a holder has its share. */
  take(holders: readonly string[] = [], size = 1): boolean {
    if (!this.hasRoom(size) || !this.hasShare(holders)) return false;
    this.#taken += size;
    this.#held.add(holders, 1);
    return true;
  }

  /** Gives back what `take` took. */
  giveBack(holders: readonly string[] = [], size = 1): void {
    this.#taken -= size;
    this.#held.add(holders, -1);
  }
}

/** Why an entrant does not start: its queue is full, or its wait is over. */
export type Refusal = 'full' | 'waited';

/** A call or other work that asks to start. */
export interface Entrant {
  /** Entrants of one client start in order; clients take turns. */
  readonly client?: string | undefined;
  /** Holders of the places: its client alone unless given. */
  readonly holders?: readonly string[] | undefined;
  /** Kinds take turns. */
  readonly kind?: string | undefined;
  /** Ranks of a kind have an order. */
  readonly rank?: string | undefined;
  /** Places that it takes: one unless given. */
  readonly size?: number | undefined;
  /** Starts the entrant, which keeps its places until `admitted.leave()`. */
  start(admitted: Admitted): void;
  refuse(reason: Refusal): void;
}

export interface Bounds {
  readonly most: number | (() => number);
  readonly each?: Each;
  /** Whether entrants of a kind and rank may start now, if there are places. */
  readonly isOpen?: (kind: string, rank: string) => boolean;
  /** Most waiting entrants of one kind: of all holders, and of one. */
  readonly waiting?: number;
  readonly eachWaiting?: Each;
  /** Longest wait of an entrant, milliseconds: for ever unless given. */
  readonly waitMs?: number | ((rank: string, kind: string) => number);
  readonly kinds?: readonly string[];
  /** The first rank starts first, except at every fourth start of the kind. */
  readonly ranks?: readonly string[];
  readonly time?: Time | undefined;
}

interface Rank {
  readonly name: string;
  readonly waitMs: number;
  /** Waiting entrants, the longest wait first. */
  readonly all: LinkedList<Admitted>;
  /** The client that had no turn for the longest time first. */
  readonly clients: Map<string, LinkedList<Admitted>>;
}

interface Kind {
  readonly name: string;
  readonly places: Places;
  readonly ranks: readonly Rank[];
  starts: number;
}

/** The right to run, or a wait for it. */
export class Admitted {
  readonly entrant: Entrant;
  readonly #limiter: Limiter;
  /** The limiter alone uses this member and the next four. */
  readonly holders: readonly string[];
  isIn = false;
  since = 0;
  inRank: Place<Admitted> | undefined;
  ofClient: Place<Admitted> | undefined;

  constructor(entrant: Entrant, limiter: Limiter) {
    const { client, holders } = entrant;
    this.entrant = entrant;
    this.#limiter = limiter;
    this.holders = holders ?? (client === undefined ? NONE : [client]);
  }

  /** Gives the place back, or waits no more. May be called again. */
  leave(): void {
    this.#limiter.leave(this);
  }

  /** Runs a step, and leaves. */
  async run<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step();
    } finally {
      this.leave();
    }
  }
}

/** Starts what has a place, lets the rest wait, and refuses what cannot wait or waited too long. */
export class Limiter {
  readonly #places: Places;
  readonly #isOpen: (kind: string, rank: string) => boolean;
  readonly #kinds: readonly Kind[];
  readonly #time: Time;
  #waiting = 0;
  /** The kind that had the last turn. */
  #turn = 0;
  #serving = false;
  /** The moment that the timer is set to. */
  #dueAt = Number.POSITIVE_INFINITY;

  constructor({ most, each, isOpen = () => true, waiting, eachWaiting, waitMs, ...rest }: Bounds) {
    const { kinds = [ANY], ranks = [ANY], time = REAL_TIME } = rest;
    this.#places = new Places(most, each);
    this.#isOpen = isOpen;
    this.#time = time;
    this.#kinds = kinds.map((kind) => ({
      name: kind,
      places: new Places(waiting ?? Number.POSITIVE_INFINITY, eachWaiting),
      ranks: ranks.map((rank) => ({
        name: rank,
        waitMs: (typeof waitMs === 'function' ? waitMs(rank, kind) : waitMs) ?? Number.POSITIVE_INFINITY,
        all: new LinkedList(),
        clients: new Map(),
      })),
      starts: 0,
    }));
  }

  /** Places that are taken. */
  get taken(): number {
    return this.#places.taken;
  }

  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(kind: string): number {
    return this.#kinds.find(({ name }) => name === kind)?.places.taken ?? 0;
  }

  /** Starts an entrant now or later, or refuses it. */
  enter(entrant: Entrant): Admitted {
    const admitted = new Admitted(entrant, this);
    // Entrants that wait beside a free place may not take it; one with a size waits behind them.
    const mayGo = this.#waiting === 0 || entrant.size === undefined;
    const isOpen = mayGo && this.#isOpen(entrant.kind ?? ANY, entrant.rank ?? ANY);
    if (isOpen && this.#places.take(admitted.holders, entrant.size)) this.#start(admitted);
    else if (!this.line(admitted)) entrant.refuse('full');
    return admitted;
  }

  /** Resolves with the right to run, or with undefined where it was refused. */
  wait(entrant: Omit<Entrant, 'start' | 'refuse'>): Promise<Admitted | undefined> {
    return new Promise((resolve) => {
      this.enter({ ...entrant, start: resolve, refuse: () => resolve(undefined) });
    });
  }

  /** Runs a step in a place that is free now. Undefined: there is none, and nothing ran. */
  atOnce<T>(client: string, step: () => Promise<T>): Promise<T> | undefined {
    if (!this.#places.hasRoom() || !this.#places.hasShare([client])) return undefined;
    return this.enter({ client, start: () => undefined, refuse: () => undefined }).run(step);
  }

  /** Runs a step in a place, at once or in turn. Undefined: it was refused, and nothing ran. */
  async within<T>(client: string, step: () => Promise<T>): Promise<T | undefined> {
    return this.atOnce(client, step) ?? (await this.wait({ client }))?.run(step);
  }

  /** Makes an entrant wait, even if there is room. False: its queue is full. */
  line(entrant: Entrant | Admitted): boolean {
    const admitted = entrant instanceof Admitted ? entrant : new Admitted(entrant, this);
    const [kind, rank] = this.#whereOf(admitted);
    if (rank === undefined || kind?.places.take(admitted.holders) !== true) return false;
    const { client = ANY } = admitted.entrant;
    let line = rank.clients.get(client);
    if (line === undefined) {
      line = new LinkedList();
      rank.clients.set(client, line);
    }
    admitted.since = this.#time.now();
    admitted.inRank = rank.all.add(admitted);
    admitted.ofClient = line.add(admitted);
    this.#waiting += 1;
    this.#wakeAt(admitted.since + rank.waitMs);
    return true;
  }

  /** Starts the waiting entrants that may start now: for after a change of `isOpen` or a bound. */
  serve(): void {
    // An entrant that ends at once calls `serve` again.
    if (this.#serving) return;
    this.#serving = true;
    try {
      while (this.startNext());
    } finally {
      this.#serving = false;
    }
  }

  /** Starts the next one. False: none may start. */
  startNext(): boolean {
    for (let step = 1; step <= this.#kinds.length && this.#waiting > 0; step += 1) {
      const at = (this.#turn + step) % this.#kinds.length;
      const kind = this.#kinds[at];
      if (kind === undefined || kind.places.taken === 0) continue;
      // The order of ranks is 0, 1, 2, and 1, 2, 0 at every fourth start.
      const first = kind.starts % OTHER_EVERY === OTHER_EVERY - 1 ? 1 : 0;
      for (let look = 0; look < kind.ranks.length; look += 1) {
        const rank = kind.ranks[(first + look) % kind.ranks.length];
        if (rank === undefined || rank.all.size === 0 || !this.#isOpen(kind.name, rank.name)) continue;
        const next = this.#nextOf(rank);
        if (next === 'no_room') return false;
        if (next === undefined) continue;
        this.#turn = at;
        kind.starts += 1;
        this.#unline(next);
        this.#start(next);
        return true;
      }
    }
    return false;
  }

  /** Refuses all that waits. */
  close(): void {
    this.#refuse(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  /** Gives a place back, or ends a wait: for `Admitted`. */
  leave(admitted: Admitted): void {
    if (admitted.isIn) this.#places.giveBack(admitted.holders, admitted.entrant.size);
    else if (!this.#unline(admitted)) return;
    admitted.isIn = false;
    this.serve();
  }

  /**
   * Takes places for the first entrant that may start, past those whose holders have their shares.
   */
  #nextOf({ clients }: Rank): Admitted | 'no_room' | undefined {
    for (const [client, line] of clients)
      for (let place = line.first; place !== undefined; place = place.behind) {
        const { member } = place;
        if (!this.#places.hasRoom(member.entrant.size)) return 'no_room';
        if (!this.#places.take(member.holders, member.entrant.size)) continue;
        if (clients.size > 1) {
          clients.delete(client);
          clients.set(client, line);
        }
        return member;
      }
    return undefined;
  }

  /** Starts an entrant that has its places already. */
  #start(admitted: Admitted): void {
    admitted.isIn = true;
    admitted.entrant.start(admitted);
  }

  /** Ends a wait. False: there was none. */
  #unline(admitted: Admitted): boolean {
    const { inRank, ofClient } = admitted;
    const line = ofClient?.list;
    if (line === undefined || ofClient === undefined || inRank === undefined) return false;
    const [kind, rank] = this.#whereOf(admitted);
    rank?.all.remove(inRank);
    line.remove(ofClient);
    if (line.size === 0) rank?.clients.delete(admitted.entrant.client ?? ANY);
    kind?.places.giveBack(admitted.holders);
    this.#waiting -= 1;
    return true;
  }

  #whereOf({ entrant: { kind = ANY, rank = ANY } }: Admitted): [Kind | undefined, Rank | undefined] {
    const ofKind = this.#kinds.find(({ name }) => name === kind);
    return [ofKind, ofKind?.ranks.find(({ name }) => name === rank)];
  }

  #wakeAt(at: number): void {
    if (at >= this.#dueAt) return;
    this.#dueAt = at;
    void this.#time.sleep(Math.max(0, at - this.#time.now())).then(() => {
      if (this.#dueAt !== at) return;
      this.#dueAt = Number.POSITIVE_INFINITY;
      // `isOpen` may have changed with time; a refused entrant may have held up others.
      this.serve();
      const dueAt = this.#refuse(this.#time.now(), REFUSALS);
      this.serve();
      this.#wakeAt(dueAt);
    });
  }

  /** Refuses at most `atMost` entrants that are due. @returns when the next one is due */
  #refuse(now: number, atMost: number): number {
    let left = atMost;
    let dueAt = Number.POSITIVE_INFINITY;
    for (const { ranks } of this.#kinds)
      for (const { all, waitMs } of ranks)
        for (let oldest = all.first?.member; oldest !== undefined; oldest = all.first?.member) {
          if (left === 0 || oldest.since + waitMs > now) {
            dueAt = Math.min(dueAt, oldest.since + waitMs);
            break;
          }
          left -= 1;
          this.#unline(oldest);
          oldest.entrant.refuse('waited');
        }
    return dueAt;
  }
}

/** A count for each name; a name at zero takes no memory. */
export class Counts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(names: Iterable<string>, by: 1 | -1): void {
    for (const name of names) {
      const next = this.of(name) + by;
      if (next > 0) this.#counts.set(name, next);
      else this.#counts.delete(name);
    }
  }
}
