/** Payments in another asset, or on another network, than this configuration has. */

import type { PaymentRail } from './types.ts';

interface PaidIn {
  /** CAIP-2. */
  readonly network: string;
  readonly asset: string;
}

/** Why a payment is of no asset of this configuration; undefined where it is. */
export function whyElsewhere(paid: PaidIn, { network, asset }: PaidIn): string | undefined {
  return paid.network === network && paid.asset.toLowerCase() === asset.toLowerCase()
    ? undefined
    : `it was paid in ${paid.asset} on ${paid.network}, and this configuration has ${asset} on ${network}: ` +
        'start a gateway with that configuration to finish it';
}

/**
 * The rail for the payments of its own asset. What another chain shows proves nothing about the
 * others, and no facilitator may be sent them: they stay as they are.
 */
export function ofItsAsset<Rail extends PaymentRail>(rail: Rail, own: PaidIn): Rail {
  return {
    ...rail,
    async verify(proof, offer) {
      const cause = whyElsewhere(offer, own);
      return cause === undefined ? rail.verify(proof, offer) : { kind: 'unavailable', cause };
    },
    async settle(proof, offer, ...more) {
      const cause = whyElsewhere(offer, own);
      return cause === undefined ? rail.settle(proof, offer, ...more) : { kind: 'uncertain', cause };
    },
    async reconcile(proof, offer, history) {
      const cause = whyElsewhere(offer, own);
      return cause === undefined ? rail.reconcile(proof, offer, history) : { kind: 'unknown', cause };
    },
  };
}
