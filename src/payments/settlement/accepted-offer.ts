/**
 * Which offer a proof accepts: the present one, or one that the configuration has replaced since
 * and whose time is not over (contract 4.2).
 */

import { formatAmount } from '../pricing/amount.ts';
import type { ReadToken } from '../pricing/buyer-token.ts';
import { UPFRONT } from '../x402/wire/challenge.ts';
import type { Agreed, Offers } from '../x402/wire/offers.ts';
import type { EchoedRequirements } from '../x402/wire/types.ts';

/**
 * The amount and the time of an offer, and in `extra` whether its money moves first: all else of it
 * stays until the process ends.
 */
type Terms = Pick<EchoedRequirements, 'amount' | 'maxTimeoutSeconds' | 'extra'>;

/** The offer that a proof accepts. `over`: it was made, and its time has passed. */
interface AcceptedOffer {
  readonly agreed: Agreed;
  readonly over: boolean;
}

/** Offers that this process made and that its configuration has replaced. */
export interface ReplacedOffers {
  /** Takes the place of the offers that were made until now. */
  replace(before: Offers, now: Offers): void;
  /** The offer with these terms, while one that this process issued may still be accepted. */
  find(resourceUrl: string, terms: Terms): Agreed | undefined;
}

interface ReplacedOffer {
  readonly agreed: Agreed;
  readonly untilMs: number;
}

/**
 * Remembers for the buyers whose clients do not echo the token of their 402. Only for as long as
 * such a 402 lasts, so that its size is bounded by what is sold and how often that changes.
 */
export function createReplacedOffers(now: () => number = Date.now): ReplacedOffers {
  let replaced: readonly ReplacedOffer[] = [];
  return {
    replace(before, after) {
      const nowMs = now();
      const present = new Map([...after.values()].map((offer) => [offer.resourceUrl, offer]));
      const made = [...before.values()].flatMap((offer) => [offer, offer.upfront ?? []].flat());
      const ended = made.filter(({ resourceUrl, requirements }) => {
        const offer = present.get(resourceUrl);
        return ![offer, offer?.upfront].some((now) => now !== undefined && sameTerms(now.requirements, requirements));
      });
      replaced = [
        ...replaced.filter(({ untilMs }) => untilMs >= nowMs),
        ...ended.map((agreed) => ({ agreed, untilMs: nowMs + agreed.requirements.maxTimeoutSeconds * 1_000 })),
      ];
    },
    find(resourceUrl, terms) {
      const nowMs = now();
      return replaced.findLast(
        ({ agreed, untilMs }) =>
          untilMs >= nowMs && agreed.resourceUrl === resourceUrl && sameTerms(agreed.requirements, terms),
      )?.agreed;
    },
  };
}

/** What tells an offer that was made from one that a buyer made up. */
interface Evidence {
  /** The token of the proof, read with the terms of the proof. */
  readonly token: Pick<ReadToken, 'offeredUntilMs'> | undefined;
  readonly replaced: Pick<ReplacedOffers, 'find'>;
  readonly assetDecimals: number;
  readonly nowMs: number;
}

/**
 * The present offer, unless the proof accepts other terms that are shown to have been offered. A
 * token shows it on every process that has its key, also on one that never made the offer: prices
 * do not change on all replicas at once. No token shows whether the money was to move first: only
 * the process that offered it knows.
 */
export function acceptedOffer(
  present: Agreed,
  accepted: Terms,
  { token, replaced, assetDecimals, nowMs }: Evidence,
): AcceptedOffer {
  const { upfront } = present;
  const offer = upfront !== undefined && accepted.extra?.['paymentFlow'] === UPFRONT ? upfront : present;
  const { requirements, resourceUrl } = offer;
  if (sameTerms(requirements, accepted)) return { agreed: offer, over: false };
  const { amount, maxTimeoutSeconds } = accepted;
  const until = sameFlow(requirements, accepted) ? token?.offeredUntilMs : undefined;
  const own = replaced.find(resourceUrl, accepted);
  if (until === undefined && own === undefined) return { agreed: offer, over: false };
  const { leastSeconds } = own ?? offer;
  const agreed = {
    ...offer,
    requirements: { ...requirements, amount, maxTimeoutSeconds, extra: (own ?? offer).requirements.extra },
    amount: formatAmount(BigInt(amount), assetDecimals),
    ...(leastSeconds === undefined ? {} : { leastSeconds }),
  };
  return { agreed, over: own === undefined && until !== undefined && nowMs >= until };
}

function sameTerms(one: Terms, other: Terms): boolean {
  return one.amount === other.amount && one.maxTimeoutSeconds === other.maxTimeoutSeconds && sameFlow(one, other);
}

/** A client that leaves it out contradicts nothing. */
function sameFlow(one: Pick<Terms, 'extra'>, other: Pick<Terms, 'extra'>): boolean {
  const [flow = '', otherFlow = flow] = [one, other].map(({ extra }) => extra?.['paymentFlow']);
  return flow === otherFlow;
}
