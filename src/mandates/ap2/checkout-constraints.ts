/** Compares a checkout with the constraints of an open checkout mandate (ap2 7.6, step 13). */

import type { Json, JsonObject } from '../../json/json.ts';
import type { CartLine, CheckoutClaims } from './checkout.ts';
import { readMerchants } from './payment-mandate.ts';
import { checkHas, identity, list, named, object, readConstraints, text, whole } from './readers.ts';
import { Refused } from './reasons.ts';

/** Most requirements, and lines of a cart. Beyond these limits deciding would cost too much. */
export const MAX_REQUIREMENTS = 32;
const MAX_QUANTITY = 1_000;

/** Whether a checkout fulfils one constraint. */
type CheckoutRule = (checkout: CheckoutClaims) => boolean;

/** The constraints of open checkout mandates (ap2 2.2). */
const RULES: Readonly<Record<string, (constraint: JsonObject) => CheckoutRule>> = {
  'checkout.allowed_merchants': ({ allowed }) => {
    const merchants = readMerchants(allowed);
    // The id alone: two merchants may have one name or website (AP2 issue 315).
    return ({ merchantId }) => merchants.some(({ id }) => id === merchantId);
  },
  'checkout.line_items': ({ items }) => {
    const requirements = readRequirements(items);
    return ({ lineItems }) => lineItems !== undefined && assignable(requirements, lineItems);
  },
};

export const CHECKOUT_CONSTRAINTS: readonly string[] = Object.keys(RULES);

/** For one open checkout mandate. @throws Refused */
export function checkCheckoutConstraints(open: JsonObject, checkout: CheckoutClaims): void {
  const rules = readConstraints(open, RULES);
  checkHas(rules, 'checkout.line_items');
  for (const { type, rule } of rules)
    if (!named(type, () => rule(checkout))) throw new Refused('constraint_violated', { constraint: type });
}

/** A demand for `quantity` pieces of any `acceptable` items. */
export interface Requirement {
  /** Ids of the disclosed items; a withheld item is not acceptable. */
  readonly acceptable: ReadonlySet<string>;
  readonly quantity: number;
}

/** @throws Refused claims_invalid, constraint_unresolved for what is too large */
function readRequirements(items: Json | undefined): readonly Requirement[] {
  const entries = list(items);
  if (entries.length === 0) throw new Refused('claims_invalid');
  const requirements = entries.map(requirementOf);
  if (requirements.length > MAX_REQUIREMENTS || requirements.some(({ quantity }) => quantity > MAX_QUANTITY))
    throw new Refused('constraint_unresolved');
  return requirements;
}

function requirementOf(entry: Json): Requirement {
  const { id, acceptable_items, quantity } = object(entry);
  identity(id);
  const acceptable = list(acceptable_items).map((item) => {
    const shown = object(item);
    text(shown['title']);
    return identity(shown['id']);
  });
  return { acceptable: new Set(acceptable), quantity: whole(quantity, 1) };
}

/**
 * Whether the pieces of the cart can be assigned to the required pieces, each to exactly one: a
 * flow from requirements to lines that fills both sides (ap2 2.2). An empty list of acceptable
 * items accepts nothing.
 * @throws Refused constraint_unresolved for a cart of too many lines
 */
export function assignable(requirements: readonly Requirement[], cart: readonly CartLine[]): boolean {
  const required = total(requirements);
  if (required !== total(cart)) return false;
  if (cart.length > MAX_REQUIREMENTS) throw new Refused('constraint_unresolved');
  const flow = new Flow(requirements, cart);
  let assigned = 0;
  for (const [index, { quantity }] of requirements.entries())
    for (let wanted = quantity; wanted > 0; ) {
      const pushed = flow.assign(index, wanted);
      // No augmenting path is left, so no other order of assigning finds one either.
      if (pushed === 0) return false;
      wanted -= pushed;
      assigned += pushed;
    }
  return assigned === required;
}

function total(entries: readonly { readonly quantity: number }[]): number {
  return entries.reduce((sum, { quantity }) => sum + quantity, 0);
}

/** Ford and Fulkerson on two sides: assigned pieces move to another line where that makes room. */
class Flow {
  readonly #requirements: readonly Requirement[];
  readonly #cart: readonly CartLine[];
  /** Pieces of each line that are not assigned yet. */
  readonly #free: number[];
  /** Pieces of each line that each requirement has. */
  readonly #given: number[][];

  constructor(requirements: readonly Requirement[], cart: readonly CartLine[]) {
    this.#requirements = requirements;
    this.#cart = cart;
    this.#free = cart.map(({ quantity }) => quantity);
    this.#given = requirements.map(() => cart.map(() => 0));
  }

  /** Gives a requirement up to so many pieces. Returns how many; 0 when none can be given. */
  assign(requirement: number, wanted: number): number {
    return this.#find(requirement, wanted, new Set());
  }

  #find(requirement: number, wanted: number, seen: Set<number>): number {
    for (const [line, { itemId }] of this.#cart.entries()) {
      if (seen.has(line) || this.#requirements[requirement]?.acceptable.has(itemId) !== true) continue;
      seen.add(line);
      const pushed = this.#take(line, wanted, seen);
      if (pushed === 0) continue;
      this.#give(requirement, line, pushed);
      return pushed;
    }
    return 0;
  }

  /** Takes free pieces of a line, or pieces whose requirement can get others elsewhere. */
  #take(line: number, wanted: number, seen: Set<number>): number {
    const free = Math.min(this.#free[line] ?? 0, wanted);
    if (free > 0) {
      this.#free[line] = (this.#free[line] ?? 0) - free;
      return free;
    }
    for (const [other, given] of this.#given.entries()) {
      const held = Math.min(given[line] ?? 0, wanted);
      const moved = held === 0 ? 0 : this.#find(other, held, seen);
      if (moved === 0) continue;
      this.#give(other, line, -moved);
      return moved;
    }
    return 0;
  }

  #give(requirement: number, line: number, pieces: number): void {
    const given = this.#given[requirement];
    if (given !== undefined) given[line] = (given[line] ?? 0) + pieces;
  }
}
