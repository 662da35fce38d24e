/** Sellers that are no gateway of ours: what they ask for, and the payments that they get. */

import { encodePaymentRequiredHeader } from '@x402/core/http';
import type { PaymentRequired } from '@x402/core/types';
import { LOCAL_TOKEN } from '../../../src/payments/pricing/networks.ts';
import { answerJson, type HttpExchange, serveHttp } from '../../support/http-server.ts';

/** An answer of a seller that got these payments so far. */
export type Answer = (exchange: HttpExchange, proofs: readonly string[]) => unknown;

export const PAYEE = `0x${'2'.repeat(40)}`;

/** The document of a 402 with one offer. */
export function asking(changes: object = {}, resource: object = {}): PaymentRequired {
  const terms = { scheme: 'exact', network: 'eip155:31337', amount: '10000', asset: LOCAL_TOKEN.address };
  const rest = { payTo: PAYEE, maxTimeoutSeconds: 120, extra: { name: 'Test USD', version: '2' } };
  return {
    ...{ x402Version: 2, resource: { url: 'https://shop.example/x', ...resource } },
    accepts: [{ ...terms, ...rest, ...changes }],
  } as PaymentRequired;
}

/** Asks for a payment. */
export function challenged(document = asking(), body: object = {}): Answer {
  return ({ response }) => {
    response.setHeader('payment-required', encodePaymentRequiredHeader(document));
    answerJson(response, 402, body);
  };
}

export const delivered: Answer = ({ response }) => answerJson(response, 200, {});

/** Asks for a payment until one comes. */
export function selling(paid: Answer, unpaid: Answer = challenged()): Answer {
  return (exchange, proofs) => {
    const isPaid = exchange.request.headers['payment-signature'] !== undefined;
    (isPaid ? paid : unpaid)(exchange, proofs);
  };
}

/** A seller that answers so, the payments that it got, and their keys. */
export async function openSeller(answer: Answer) {
  const proofs: string[] = [];
  const keys = new Set<unknown>();
  const server = await serveHttp((exchange) => {
    const { 'payment-signature': proof, 'idempotency-key': key } = exchange.request.headers;
    if (typeof proof === 'string') {
      proofs.push(proof);
      keys.add(key);
    }
    answer(exchange, proofs);
  });
  return { ...server, proofs, keys };
}
