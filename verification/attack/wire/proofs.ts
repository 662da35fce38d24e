/** Proofs of a buyer with funds, in chosen spellings. */

import { createBuyer } from '../../../spec/support/buyer.ts';
import { askPrice } from '../../../spec/support/purchase.ts';
import type { Target } from '../target.ts';

/** Makes proofs of a buyer with funds. */
export interface ProofMaker {
  /** A fresh PAYMENT-SIGNATURE for a resource and its input. */
  proof(resourceId: string, input?: object): Promise<string>;
}

export async function proofMaker({ chain, url }: Pick<Target, 'chain' | 'url'>): Promise<ProofMaker> {
  const buyer = await createBuyer(chain);
  return {
    proof: async (resourceId, input = {}) =>
      buyer.pay((await askPrice(url, resourceId, JSON.stringify(input))).paymentRequired),
  };
}

/**
 * The same proof in another spelling: `length` characters of base64 without padding, filled up with
 * the white space of JSON.
 */
export function spelledAt(proof: string, length: number): string {
  const json = Buffer.from(proof, 'base64').toString('utf8').trimEnd();
  return Buffer.from(json.padEnd(Math.floor((length * 3) / 4)))
    .toString('base64')
    .replace(/=+$/, '');
}
