/** The one limiter: a bound, a bounded wait, and turns among kinds and clients for what waits. */

import { LinkedList, type Place } from './linked-list.ts';
import { REAL_TIME, type Time } from './time/time.ts';

/** Refusing 1,000 waiting calls takes some 20 ms, so a turn of the event loop refuses so many. */
const REFUSALS = 64;
/** At every so many starts the ranks of a kind change their order, so that none waits for ever. */
const OTHER_EVERY = 4;
/** The only kind and the only rank, where there are no others. */
const ANY = '';
const NONE: readonly string[] = [];

/**
 * How many places one holder gets. `share`: another one while it holds fewer than are free; one
 * alone gets half, the next one a third, and a few together never take the last place.
 */
type Each = number | 'share' | ((holder: string) => number);

/** Places that holders share, as client networks or payers. */
export class Places {
  readonly #most: () => number;
  readonly #each: Each;
  readonly #held = new Counts();
  #taken = 0;

  /** `most`: of all together; a function is asked each time, because it may change. */
  constructor(most: number | (() => number), each: Each = Number.POSITIVE_INFINITY) {
    this.#most = typeof most === 'number' ? () => most : most;
    this.#each = each;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Whether so many more may be taken. A size beyond the bound gets all places, alone. */
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

/** Why something does not start: as much waits as may, or it waited for as long as it may. */
export type Refusal = 'full' | 'waited';

/** What asks to start. */
export interface Entrant {
  /** What waits for one client starts in order; clients take turns. */
  readonly client?: string | undefined;
  /** Whose shares it takes: that of its client unless given. */
  readonly holders?: readonly string[] | undefined;
  /** Kinds take turns. */
  readonly kind?: string | undefined;
  /** Ranks of a kind have an order. */
  readonly rank?: string | undefined;
  /** Places that it takes: one unless given. */
  readonly size?: number | undefined;
  /** It has its place until `admitted.leave()`. */
  start(admitted: Admitted): void;
  refuse(reason: Refusal): void;
}

export interface Bounds {
  readonly most: number | (() => number);
  readonly each?: Each;
  /** Whether what waits of a kind and rank may start now, beside the places. */
  readonly isOpen?: (kind: string, rank: string) => boolean;
  /** What waits at most of each kind, and of it for one holder. */
  readonly waiting?: number;
  readonly eachWaiting?: Each;
  /** How long one waits, milliseconds: for ever unless given. */
  readonly waitMs?: number | ((rank: string, kind: string) => number);
  readonly kinds?: readonly string[];
  /** The first one goes first, but for every fourth start of the kind. */
  readonly ranks?: readonly string[];
  readonly time?: Time | undefined;
}

interface Rank {
  readonly name: string;
  readonly waitMs: number;
  /** The longest wait first. */
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
  /** For the limiter. */
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

  /** Starts it now, later, or refuses it. */
  enter(entrant: Entrant): Admitted {
    const admitted = new Admitted(entrant, this);
    // What waits beside a free place may not take it. Only large ones wait for several places.
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

  /** Lets it wait, whether there is room or not. False: there is no place to wait. */
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

  /** Starts what waits and may start now: for when something else than a place became free. */
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

  /** The first one that may start. One whose holders have their shares lets others go past it. */
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

  /** It has its places already. */
  #start(admitted: Admitted): void {
    admitted.isIn = true;
    admitted.entrant.start(admitted);
  }

  /** False: it does not wait. */
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
      // Time alone may have made room, and so may the end of a wait for several places.
      this.serve();
      const dueAt = this.#refuse(this.#time.now(), REFUSALS);
      this.serve();
      this.#wakeAt(dueAt);
    });
  }

  /** Refuses what is due, so many at most. @returns when the next one is due */
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

/** How many of a thing each of many names has; a name that has none takes no memory. */
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
