/**
 * Asks the backend for the price of an input, where `pricing.by.quote` says so (contract 4.9). No
 * answer means no offer: a price is never guessed.
 */

import { type Exchange, NONE_RELAYED } from '../../backend/backend-exchange.ts';
import { GatewayError } from '../../errors.ts';
import type { Json } from '../../json/json.ts';
import { fetchAnswer } from '../../payments/delivery/fetch-answer.ts';
import { type QuotedPrice, type QuoteRule, quotedUnits } from '../../payments/pricing/by-input.ts';
import type { UnpaidWorkLimits } from '../../payments/settlement/places.ts';
import { whatIsBought } from '../../payments/settlement/terms.ts';
import { createTokenBuckets } from '../../server/limits/rates.ts';
import type { PreparedCall, ProvenCall } from '../call.ts';
import { requestToBackend } from './forward.ts';

/** From connect to the last byte of a quote, milliseconds. */
const DEADLINE_MS = 2_000;
/** Largest answer, bytes. */
const MAX_BYTES = 4_096;

/** One question. */
export interface QuoteAsked {
  readonly call: PreparedCall | ProvenCall;
  readonly rule: QuoteRule;
  /** Of the asset that the price is for. */
  readonly decimals: number;
  /** The network that the question counts against. */
  readonly network: string;
}

interface QuoteParts {
  readonly exchange: Exchange;
  /** `perNetwork` quotes within the window may stay unbought; asked for each question. */
  readonly limits: () => Pick<UnpaidWorkLimits, 'perNetwork' | 'windowMs'>;
  readonly warn: (facts: { readonly resourceId: string; readonly fault: string }) => void;
}

export function createQuotes({ exchange, limits, warn }: QuoteParts) {
  const budget = createTokenBuckets(() => {
    const { perNetwork, windowMs } = limits();
    return { burst: perNetwork, perSecond: (perNetwork * 1_000) / windowMs };
  });
  /** By what is bought: equal questions at one time get one answer. */
  const asking = new Map<string, Promise<QuotedPrice>>();
  const asked = (question: QuoteAsked): Promise<QuotedPrice> => {
    const { call, rule, decimals, network } = question;
    // A reload may change the bounds.
    const name = `${decimals} ${JSON.stringify(rule)} ${whatIsBought(call.resource.id, call.request, call.input)}`;
    const known = asking.get(name);
    if (known !== undefined) return known;
    const { granted } = budget.take(network);
    if (!granted)
      throw new GatewayError('GATEWAY_BUSY', { message: 'Too many prices were asked for. Buy one, or ask later.' });
    const notAsked = (): void => budget.giveBack(network);
    const answer = quoted(exchange, question, notAsked).finally(() => asking.delete(name));
    asking.set(name, answer);
    return answer;
  };
  return {
    /** Gives base units. @throws GatewayError GATEWAY_BUSY */
    async ask(question: QuoteAsked): Promise<bigint> {
      const priced = await asked(question);
      if (priced.kind === 'price') return priced.units;
      warn({ resourceId: question.call.resource.id, fault: priced.message });
      throw new GatewayError('GATEWAY_BUSY', {
        message: 'The price of this call cannot be told just now, so nothing is offered. Send it again.',
      });
    },
    /** A quote that was asked for from this network is paid. */
    bought: (network: string): void => budget.giveBack(network),
  };
}

/** `notAsked`: called where certainly no byte of the question reached the backend. */
async function quoted(
  exchange: Exchange,
  { call, rule, decimals }: QuoteAsked,
  notAsked: () => void,
): Promise<QuotedPrice> {
  const { requestId, trace, channel, resource } = call;
  const headers = { ...resource.backend.headers, 'content-type': 'application/json' };
  const request = { method: rule.method, path: rule.path, headers, body: Buffer.from(JSON.stringify(call.input)) };
  const limits = { timeoutMs: DEADLINE_MS, maxResponseBytes: MAX_BYTES, relayStatuses: NONE_RELAYED };
  const toBackend = requestToBackend({ requestId, trace, channel, resource, request }, undefined);
  const worked = await fetchAnswer(exchange, toBackend, limits);
  if (worked.kind === 'failed') {
    const { status, reason, requestWritten } = worked.failure;
    if (!requestWritten) notAsked();
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
