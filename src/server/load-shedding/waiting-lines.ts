/** The calls of one kind that wait: a line for each client network, and clients take turns. */

import { LinkedList, type Place } from '../../linked-list.ts';
import { Shares } from '../rate-limit/shares.ts';

/**
 * How a call stands among those of its kind. `paid`: its connection has bought something lately;
 * `failed`: the last proof of its connection, or the last proofs of its network, bought nothing.
 */
export type Standing = 'paid' | 'usual' | 'failed';

/** Order of begins. At every fourth begin it is another one, so that no buyer waits for ever. */
const ORDER: readonly Standing[] = ['paid', 'usual', 'failed'];
const OTHER_ORDER: readonly Standing[] = ['usual', 'failed', 'paid'];
const OTHER_EVERY = 4;

/** The facts of a call that the lines need. */
export interface Lined {
  readonly standing: Standing;
  /** The network of its client. */
  readonly client: string;
  /** Whether it counts against the bound of large calls. */
  readonly large: boolean;
}

interface Entry<Call> {
  readonly call: Call;
  /** Milliseconds of the monotonic clock. */
  readonly since: number;
  /** Among all, as they came, and in the line of its client. */
  place?: Place<Entry<Call>>;
  inLine?: Place<Entry<Call>>;
}

/** Most calls that wait, and large ones of them. One client gets half of the large ones at most. */
interface LinesBounds {
  readonly calls: number;
  readonly large: number;
}

export class WaitingLines<Call extends Lined> {
  readonly #all = new LinkedList<Entry<Call>>();
  readonly #lines = {
    paid: new Map<string, LinkedList<Entry<Call>>>(),
    usual: new Map<string, LinkedList<Entry<Call>>>(),
    failed: new Map<string, LinkedList<Entry<Call>>>(),
  };
  readonly #most: number;
  readonly #large: Shares;
  #begins = 0;

  constructor({ calls, large }: LinesBounds) {
    this.#most = calls;
    this.#large = new Shares(() => large);
  }

  get size(): number {
    return this.#all.size;
  }

  /** False: there is no place for this client's call. */
  enter(call: Call, since: number): boolean {
    const { client, standing, large } = call;
    if (this.#all.size >= this.#most || (large && !this.#large.enter(client))) return false;
    const lines = this.#lines[standing];
    let line = lines.get(client);
    if (line === undefined) {
      line = new LinkedList();
      lines.set(client, line);
    }
    const entry: Entry<Call> = { call, since };
    entry.place = this.#all.add(entry);
    entry.inLine = line.add(entry);
    return true;
  }

  /** Takes out the call that waits longest, if it has waited since then or longer. */
  takeOldest(since: number): Call | undefined {
    const oldest = this.#all.first?.member;
    return oldest === undefined || oldest.since > since ? undefined : this.#take(oldest);
  }

  /** Takes out the call whose turn it is. `failed`: whether it may be one of that standing. */
  takeNext(failed = true): Call | undefined {
    this.#begins += 1;
    for (const standing of this.#begins % OTHER_EVERY === 0 ? OTHER_ORDER : ORDER) {
      const lines = this.#lines[standing];
      if (standing === 'failed' && !failed) continue;
      for (const [client, line] of lines) {
        const next = line.first?.member;
        if (next === undefined) continue;
        if (lines.size > 1) {
          // The client goes behind the others.
          lines.delete(client);
          lines.set(client, line);
        }
        return this.#take(next);
      }
    }
    return undefined;
  }

  #take({ call, place, inLine }: Entry<Call>): Call {
    const { client, standing, large } = call;
    if (place !== undefined) this.#all.remove(place);
    const line = inLine?.list;
    if (inLine !== undefined) line?.remove(inLine);
    if (line?.size === 0) this.#lines[standing].delete(client);
    if (large) this.#large.leave(client);
    return call;
  }
}
