/**
 * Finds the offer that a proof accepts: the present one, one that a reload replaced, or one that
 * the token of its 402 shows (contract 4.2).
 */

import { formatAmount, rescaled } from '../pricing/amount.ts';
import type { BuyerTokens, OfferedTerms, ReadToken } from '../pricing/buyer-token.ts';
import { UPFRONT } from '../x402/wire/challenge.ts';
import { type Agreed, isPaidIn, type Offered, type Offers, offeredIn, tokenTerms } from '../x402/wire/offers.ts';
import type { EchoedRequirements } from '../x402/wire/types.ts';

/**
 * The members of an offer that can change while the process runs: amount, time, and in `extra`
 * whether the money moves first. Network and asset tell the offers of one resource apart.
 */
type Terms = Pick<EchoedRequirements, 'network' | 'asset' | 'amount' | 'maxTimeoutSeconds' | 'extra'>;

export type ReplacedOffers = ReturnType<typeof createReplacedOffers>;

interface ReplacedOffer {
  readonly offer: Offered;
  /** Unix milliseconds. */
  readonly atMs: number;
}

/**
 * Remembers replaced offers for the buyers whose clients do not echo the token of a 402 and
 * whose token names a price that is offered no more. An offer is remembered as long as such a 402
 * lasts, so the number of resources and of changes bounds the memory.
 */
export function createReplacedOffers(now: () => number = Date.now) {
  let replaced: readonly ReplacedOffer[] = [];
  const lasts = ({ atMs }: ReplacedOffer, { requirements }: Offered): boolean =>
    now() <= atMs + requirements.maxTimeoutSeconds * 1_000;
  const lastsFor = (one: ReplacedOffer): boolean => termsOf(one.offer).some((terms) => lasts(one, terms));
  return {
    /** Remembers the offers of `before` that `after` does not have. */
    replace(before: Offers, after: Offers): void {
      const atMs = now();
      const present = new Map([...after.values()].map((offer) => [offer.resourceUrl, offer]));
      const isGone = (offer: Offered): boolean => {
        const next = present.get(offer.resourceUrl);
        if (next === undefined || next.entry !== offer.entry || next.followsInput !== offer.followsInput) return true;
        const offered = termsOf(next);
        return termsOf(offer).some((one) => !offered.some((it) => sameTerms(it.requirements, one.requirements)));
      };
      const ended = [...before.values()].filter(isGone).map((offer) => ({ offer: plain(offer), atMs }));
      replaced = [...replaced.filter(lastsFor), ...ended];
    },
    /** The replaced offers of a resource whose 402s may still be accepted, the oldest first. */
    of: (resourceUrl: string): readonly Offered[] =>
      replaced.filter((one) => one.offer.resourceUrl === resourceUrl && lastsFor(one)).map(({ offer }) => offer),
    /**
     * The replaced terms of a proof, while a 402 with them may still be accepted. A price that
     * follows the input was offered for that input alone, which only a token shows.
     */
    find(resourceUrl: string, terms: Terms): Agreed | undefined {
      const own = replaced.filter(({ offer }) => offer.resourceUrl === resourceUrl && !offer.followsInput);
      return own
        .flatMap((one) => termsOf(one.offer).filter((it) => lasts(one, it) && sameTerms(it.requirements, terms)))
        .at(-1);
    },
  };
}

/** All terms that a proof for this offer may accept. */
function termsOf(offer: Offered): readonly Offered[] {
  return [offer, ...offer.others].flatMap((one) => [one, one.upfront ?? []].flat());
}

/**
 * The terms of an offer by themselves: a spread would also make its challenge, and a kept offer
 * would keep its configuration alive.
 */
function bare(offer: Offered): Offered {
  const { entry, decimals, requirements, amount, currency, resourceUrl, inPlace, leastSeconds, followsInput } = offer;
  const least = leastSeconds === undefined ? {} : { leastSeconds };
  return { entry, decimals, requirements, amount, currency, resourceUrl, inPlace, followsInput, ...least, others: [] };
}

/** A copy with the offers that belong to it. */
function plain(offer: Offered): Offered {
  const { upfront, others, ended } = offer;
  const first = upfront === undefined ? {} : { upfront: plain(upfront) };
  return { ...bare(offer), ...first, others: others.map(plain), ended: ended?.map(plain) };
}

/** A token, and the way in which the offers that it was read with name its price. */
interface Shown {
  readonly token: ReadToken;
  readonly terms: OfferedTerms;
  readonly named: Offered;
}

/** The offer that a proof accepts. */
interface Accepted {
  readonly agreed: Agreed;
  /** The offer was or may have been made, and its time has passed. */
  readonly over: boolean;
  /** The fault of a proof in an asset that is not offered. */
  readonly elsewhere?: string;
  /** Of the proof, read with its terms; undefined: it has none. */
  readonly token: ReadToken | undefined;
}

/** A proof, as far as its offer is looked for. `bind`: SHA-256 hex of what is bought. */
interface Asked {
  readonly accepted: Terms;
  readonly buyerToken: string | undefined;
  readonly bind: () => string;
  readonly nowMs: number;
}

/** Reads what proofs accept. A token is evidence on every process that has its key. */
export function createAcceptedOffers(tokens: Pick<BuyerTokens, 'read'>, replaced: Pick<ReplacedOffers, 'find' | 'of'>) {
  /** Reads a token with each way to name a price until it fits. */
  const shownTo = (present: Offered, { accepted, buyerToken }: Asked): Shown | undefined => {
    if (buyerToken === undefined) return undefined;
    let first: Shown | undefined;
    for (const offer of [present, ...replaced.of(present.resourceUrl)])
      for (const named of namings(offer)) {
        const terms = tokenTerms(named, accepted);
        const token = tokens.read(buyerToken, terms);
        if (token === undefined) return undefined;
        first ??= { token, terms, named };
        if (token.offeredUntilMs !== undefined) return { token, terms, named };
      }
    return first;
  };
  return {
    /**
     * The present offer in the asset that a proof accepts, unless it accepts other terms that are
     * shown to have been offered: prices do not change on all replicas at once. No token shows
     * whether the money was to move first: only the process that made the offer knows. The time of
     * an offer in an asset that is not offered now has passed, so that the chain is asked whether
     * it paid before.
     */
    of(present: Offered, asked: Asked): Accepted {
      const { accepted, bind, nowMs } = asked;
      const shown = shownTo(present, asked);
      const token = shown?.token;
      const inAsset = offeredIn(present, accepted);
      const isEnded = inAsset === undefined;
      const sold = inAsset ?? present.ended?.find(({ requirements }) => isPaidIn(requirements, accepted));
      const offer = sold?.upfront !== undefined && accepted.extra?.['paymentFlow'] === UPFRONT ? sold.upfront : sold;
      const isSame = offer !== undefined && sameTerms(offer.requirements, accepted);
      if (isSame && !isEnded) return { agreed: offer, over: false, token };
      const own = replaced.find(present.resourceUrl, accepted);
      if (own !== undefined) return { agreed: own, over: false, token };
      if (isSame) return { agreed: offer, over: true, token };
      if (offer === undefined) return { ...notOffered(present, accepted), token };
      const { requirements } = offer;
      const isShown = shown !== undefined && sameFlow(requirements, accepted) && isFor(shown, bind);
      const until = isShown ? untilOf(shown, accepted) : undefined;
      if (until === undefined)
        return isEnded ? { ...notOffered(present, accepted), token } : { agreed: offer, over: false, token };
      const { amount, maxTimeoutSeconds } = accepted;
      const agreed = {
        ...bare(offer),
        requirements: { ...requirements, amount, maxTimeoutSeconds },
        amount: formatAmount(BigInt(amount), offer.decimals),
      };
      return { agreed, over: isEnded || nowMs >= until, token };
    },
    /**
     * The price that the token of a proof shows for its input, while its 402 lasts, in base units
     * of the first asset of `lowest`; undefined: it shows none.
     */
    priceShown(lowest: Offered, asked: Asked): bigint | undefined {
      const shown = shownTo(lowest, asked);
      if (shown === undefined || !isFor(shown, asked.bind)) return undefined;
      if ((untilOf(shown, asked.accepted) ?? 0) <= asked.nowMs) return undefined;
      return rescaled(BigInt(shown.terms.units), shown.named.decimals, lowest.decimals);
    },
  };
}

/**
 * The ways in which a 402 of this sale may have named its price, the present one first: in each
 * asset, because another one may have been the first, and for its own input alone or for all.
 */
function* namings(offer: Offered): Generator<Offered> {
  const { others, ended = [] } = offer;
  const all = [offer, ...others, ...ended];
  for (const followsInput of [offer.followsInput, !offer.followsInput])
    for (const first of all) {
      const isAsItIs = first === offer && followsInput === offer.followsInput && ended.length === 0;
      yield isAsItIs ? offer : { ...bare(first), followsInput, others: all.filter((one) => one !== first) };
    }
}

/**
 * The end of the offer that a token shows, Unix milliseconds. The token has the time of the first
 * asset, and the accepted one may have a shorter one.
 */
function untilOf({ token, terms }: Shown, { maxTimeoutSeconds }: Terms): number | undefined {
  const shorter = Math.max(0, terms.maxTimeoutSeconds - maxTimeoutSeconds);
  return token.offeredUntilMs === undefined ? undefined : token.offeredUntilMs - shorter * 1_000;
}

/** Whether a 402 was made for what is bought, where its price follows the input. */
function isFor({ token: { boundTo }, named }: Shown, bind: () => string): boolean {
  return !named.followsInput || (boundTo !== undefined && bind().startsWith(boundTo));
}

/** Compares a proof in an asset that is not offered with an offer on its network. */
function notOffered(present: Offered, { network }: Terms): Omit<Accepted, 'token'> {
  const all = [present, ...present.others];
  const agreed = all.find(({ requirements }) => requirements.network === network) ?? present;
  if (all.length === 1) return { agreed, over: false };
  const names = all.map(({ requirements }) => `${requirements.asset} on ${requirements.network}`);
  return { agreed, over: false, elsewhere: `accepted must be in an asset that is offered now: ${names.join(', ')}` };
}

function sameTerms(one: Terms, other: Terms): boolean {
  return (
    one.amount === other.amount &&
    one.maxTimeoutSeconds === other.maxTimeoutSeconds &&
    sameFlow(one, other) &&
    isPaidIn(one, other)
  );
}

/** Whether two flows agree; `other` may leave its flow out, as clients do. */
function sameFlow(one: Pick<Terms, 'extra'>, other: Pick<Terms, 'extra'>): boolean {
  const [flow = '', otherFlow = flow] = [one, other].map(({ extra }) => extra?.['paymentFlow']);
  return flow === otherFlow;
}
