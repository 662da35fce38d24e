/**
 * Asks the backend for the price of an input, where `pricing.by.quote` says so (contract 4.1). No
 * answer means no offer: a price is never guessed.
 */

import { type Exchange, NONE_RELAYED } from '../backend/backend-exchange.ts';
import { GatewayError } from '../errors.ts';
import type { Json } from '../json/json.ts';
import { fetchAnswer } from '../payments/delivery/fetch-answer.ts';
import { type QuotedPrice, type QuoteRule, quotedUnits } from '../payments/pricing/by-input.ts';
import type { UnpaidWork } from '../payments/settlement/places.ts';
import { RecentMap } from '../time/recent-map.ts';
import type { PreparedCall, ProvenCall } from './call.ts';
import { requestToBackend } from './middleware/forward.ts';

/** From connect to the last byte of a quote, milliseconds. */
const DEADLINE_MS = 2_000;
/** Largest answer, bytes. */
const MAX_BYTES = 4_096;
/** Inputs whose quotes are counted each. */
const REMEMBERED = 10_000;
/** Unpaid quotes of one input that have names of their own. */
const MOST_COUNTED = 1_000;

/** One question. */
export interface QuoteAsked {
  readonly call: PreparedCall | ProvenCall;
  readonly rule: QuoteRule;
  /** Of the asset that the price is for. */
  readonly decimals: number;
  /** The network that the question counts against. */
  readonly network: string;
  /** What the call buys, as the token of its 402 binds it. */
  readonly bind: string;
}

interface Quotes {
  /** Gives base units. @throws GatewayError GATEWAY_BUSY */
  ask(asked: QuoteAsked): Promise<bigint>;
  /** The input was bought, so its quotes count as unpaid work no more. `bind`: as it was asked. */
  bought(bind: string): void;
}

interface QuoteParts {
  readonly exchange: Exchange;
  /** A quote is unpaid work until a proof for it comes. */
  readonly unpaidWork: Pick<UnpaidWork, 'enter' | 'paid'>;
  readonly warn: (facts: { readonly resourceId: string; readonly fault: string }) => void;
}

/** The name of a quote in the budget of unpaid work. Quotes of one input count each. */
function quoteName(bind: string, nth: number): string {
  return `quote ${bind} ${nth}`;
}

export function createQuotes({ exchange, unpaidWork, warn }: QuoteParts): Quotes {
  /** How often an input was asked about since it was bought, up to `MOST_COUNTED`. */
  const asked = new RecentMap<number>(REMEMBERED);
  return {
    async ask({ call, rule, decimals, network, bind }) {
      const resourceId = call.resource.id;
      const nth = ((asked.use(bind) ?? 0) % MOST_COUNTED) + 1;
      asked.add(bind, nth);
      const place = await unpaidWork.enter({
        ...{ payId: quoteName(bind, nth), payer: bind, resourceId, network, atMostMs: DEADLINE_MS },
      });
      if (typeof place === 'string')
        throw new GatewayError('GATEWAY_BUSY', { message: 'Too many prices were asked for. Ask again later.' });
      try {
        const priced = await quoted(exchange, call, rule, decimals);
        if (priced.kind === 'price') return priced.units;
        warn({ resourceId, fault: priced.message });
      } finally {
        place.leave('unpaid');
      }
      throw new GatewayError('GATEWAY_BUSY', {
        message: 'The price of this call cannot be told just now, so nothing is offered. Send it again.',
      });
    },
    bought(bind) {
      // Another process may have asked: its first quote has the first name too.
      for (let nth = Math.max(asked.use(bind) ?? 0, 1); nth > 0; nth -= 1) unpaidWork.paid(quoteName(bind, nth));
      asked.add(bind, 0);
    },
  };
}

async function quoted(
  exchange: Exchange,
  call: QuoteAsked['call'],
  rule: QuoteRule,
  decimals: number,
): Promise<QuotedPrice> {
  const body = Buffer.from(JSON.stringify(call.input));
  const headers = { ...call.resource.backend.headers, 'content-type': 'application/json' };
  const { requestId, trace, channel, resource } = call;
  const request = { method: rule.method, path: rule.path, headers, body };
  const asked = { requestId, trace, channel, resource, request };
  const limits = { timeoutMs: DEADLINE_MS, maxResponseBytes: MAX_BYTES, relayStatuses: NONE_RELAYED };
  const worked = await fetchAnswer(exchange, requestToBackend(asked, undefined), limits);
  if (worked.kind === 'failed') {
    const { status, reason } = worked.failure;
    return { kind: 'fault', message: `the quote failed: ${reason ?? `status ${status}`}` };
  }
  return quotedUnits(rule, readJson(worked.answer.body), decimals);
}

/** Undefined for a body that is no JSON. */
function readJson(body: Uint8Array): Json | undefined {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8')) as Json;
  } catch {
    return undefined;
  }
}
