import type { Places } from './places.ts';
import type { Pressure } from './pressure.ts';
import type { Turn } from './turn.ts';

/** Why a call is not let in. `overload`: the process has more calls than it can compute; `in_flight`: all its places are taken. */
export type ShedReason = 'overload' | 'in_flight';

/**
 * So few calls cannot be what delays the loop, so they are let in whatever the clock says: callers who wait for their answers before
 * they ask again, few enough of them, are never refused because a core was busy with something else.
 */
export const HARMLESS_IN_FLIGHT = 32;
/**
 * The same for calls that may carry a proof of payment: the copies of one proof that arrive together are a purchase and no overload, and
 * an agent whose money is at stake is told to come again only when there are really many.
 */
export const HARMLESS_PAID_IN_FLIGHT = 256;
/** While overloaded, every turn of the event loop lets in so many calls, however late it is: it may be long for another reason than calls. */
export const CALLS_A_TURN = 8;
/** While overloaded, calls are let in this far into a turn of the event loop, milliseconds. */
export const TURN_BUDGET_MS = 1;
/** The same for a call that may carry a proof of payment: the second step of a purchase is worth more than its first. */
export const PAID_TURN_BUDGET_MS = 4;

/** What the decision is made from. */
export interface SheddingParts {
  readonly places: Pick<Places, 'free' | 'inFlight'>;
  readonly pressure: Pick<Pressure, 'overloaded' | 'came'>;
  readonly turn: Pick<Turn, 'elapsed' | 'number'>;
}

/** Why this call must be refused now, or undefined. `mayPay`: it may carry a proof of payment. */
export type Shedding = (mayPay: boolean) => ShedReason | undefined;

/**
 * Sheds by the delay of the event loop. While overloaded, a turn lets calls in for TURN_BUDGET_MS and refuses those that it finds
 * later: serving them is what would make the next turn longer. So the turns stay short, the core stays busy with calls, and how many
 * calls that is need not be known: neither their cost nor how long merchants take. A limit on calls in flight alone cannot do that:
 * with a slow merchant the right one is in the hundreds, with a fast one it is fifty.
 *
 * Measured on one core of a shared two-core machine (`spec/attack/availability/overload.ts`): the cheapest call, free over HTTP, costs
 * 105 to 150 us; a refusal 14 to 16 us on its own and 22 to 33 us in a flood, two thirds of it one write to a socket whose reader sleeps.
 * At three times the capacity refusals alone take a third of the core, which is what is missing in a goodput of 52 to 70 %. Turns are 4 to
 * 5 ms long then, and the p99 of what was let in is 20 to 30 ms after the first second. A budget of 2 ms served no more and doubled
 * the times.
 *
 * It is made for calls whose cost lies in the turn where they come in. A payment costs 0.9 to 1 ms, spread over several turns, so what
 * one turn lets in comes back in later ones: three times the payments that are possible make all wait for seconds (95 % of the capacity
 * is served), and where a tenth of the calls pay, they crowd out the rest (a fourth is served). An unpaid call of a priced resource
 * costs 55 us and is over in the turn it came in: it never counts as in flight, so it is never refused.
 */
export function createShedding({ places, pressure, turn }: SheddingParts): Shedding {
  let thisTurn = 0;
  let letIn = 0;
  /** Whether this turn has let in enough. */
  const late = (mayPay: boolean): boolean => {
    // Asked also when it does not decide: it is the asking that marks the turns.
    const elapsed = turn.elapsed();
    if (turn.number !== thisTurn) {
      thisTurn = turn.number;
      letIn = 0;
    }
    const harmless = mayPay ? HARMLESS_PAID_IN_FLIGHT : HARMLESS_IN_FLIGHT;
    if (letIn < CALLS_A_TURN || places.inFlight() < harmless) return false;
    return elapsed > (mayPay ? PAID_TURN_BUDGET_MS : TURN_BUDGET_MS);
  };
  return function shed(mayPay) {
    if (pressure.overloaded) {
      const refused = late(mayPay);
      pressure.came(refused);
      if (refused) return 'overload';
      letIn += 1;
    }
    return places.free() ? undefined : 'in_flight';
  };
}
