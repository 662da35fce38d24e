/** A list whose members leave in any order. */

/** The place of a member in its list; without a list once it has left. */
export interface Place<Member> {
  readonly member: Member;
  /** The list that it is in. */
  list: LinkedList<Member> | undefined;
  before: Place<Member> | undefined;
  behind: Place<Member> | undefined;
}

/**
 * Holds members that come and go with each call. V8 links the old table of a grown `Set` to the new
 * one, so that members of both stay in memory until the next full garbage collection. A member that
 * left this list has no link to it.
 */
export class LinkedList<Member> implements Iterable<Place<Member>> {
  #first: Place<Member> | undefined;
  #last: Place<Member> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The place of the oldest member. */
  get first(): Place<Member> | undefined {
    return this.#first;
  }

  /** The place of the newest member. */
  get last(): Place<Member> | undefined {
    return this.#last;
  }

  /** Adds a member behind all others. */
  add(member: Member): Place<Member> {
    const place: Place<Member> = { member, list: this, before: this.#last, behind: undefined };
    if (this.#last === undefined) this.#first = place;
    else this.#last.behind = place;
    this.#last = place;
    this.#size += 1;
    return place;
  }

  /** False: it had left already. */
  remove(place: Place<Member>): boolean {
    if (place.list !== this) return false;
    const { before, behind } = place;
    if (before === undefined) this.#first = behind;
    else before.behind = behind;
    if (behind === undefined) this.#last = before;
    else behind.before = before;
    place.list = undefined;
    place.before = undefined;
    place.behind = undefined;
    this.#size -= 1;
    return true;
  }

  /** Yields the present members, oldest first, without those that leave meanwhile. */
  *[Symbol.iterator](): Generator<Place<Member>> {
    const places: Place<Member>[] = [];
    for (let place = this.#first; place !== undefined; place = place.behind) places.push(place);
    for (const place of places) if (place.list === this) yield place;
  }
}
