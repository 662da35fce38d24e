import type { OverloadDetector } from './overload-detector.ts';
import type { Slots } from './slots.ts';
import type { Turns } from './turns.ts';

/** Why a call is not let in. `overload`: the process has more calls than it can compute; `in_flight`: all its places are taken. */
export type ShedReason = 'overload' | 'in_flight';

/** What the decision is made from. */
interface SheddingParts {
  readonly places: Pick<Slots, 'free' | 'inFlight'>;
  readonly pressure: Pick<OverloadDetector, 'overloaded' | 'limit' | 'came'>;
  readonly turns: Pick<Turns, 'came'>;
}

/** Why the call that came must be refused now, or undefined. */
export type Shedding = () => ShedReason | undefined;

/**
 * Sheds what comes while as many calls are in flight as the loop can work on in short turns. What is in flight counts, and not what
 * came: a payment costs ten times what a free call does, in pieces that lie in many turns, and whoever lets in by the turn meets those
 * pieces again later. All calls are refused alike: with any precedence for proofs, three times the payments that are possible would be
 * all that is served.
 *
 * An unpaid call of a priced resource ends in the turn it came in, so it never counts as in flight and is refused only for others.
 * Serving it costs 55 us and refusing it 25.
 */
export function createShedding({ places, pressure, turns }: SheddingParts): Shedding {
  return function shed() {
    turns.came();
    if (pressure.overloaded) {
      const refused = places.inFlight() >= pressure.limit;
      pressure.came(refused);
      if (refused) return 'overload';
    }
    return places.free() ? undefined : 'in_flight';
  };
}
