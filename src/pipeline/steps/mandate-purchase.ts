/** What a mandate is compared with and challenged for: the purchase that a call makes. */

import type { Purchase } from '../../mandates/ap2/model/purchase.ts';
import type { Agreed } from '../../payments/x402/wire/offers.ts';
import type { PreparedCall, ProvenCall } from '../call.ts';

type Buying = Pick<PreparedCall | ProvenCall, 'resource' | 'input'> & Partial<Pick<ProvenCall, 'payment'>>;

/** The purchase of a paid call; its payer is known once the proof was verified. */
export function paidPurchase(call: Buying, { requirements, amount, currency }: Agreed): Purchase {
  const { network, asset, payTo } = requirements;
  const authorization = call.payment?.payload.payload.authorization;
  return {
    ...whatIsBought(call),
    price: { amount, currency },
    payment: { method: 'x402', network, asset, payTo, payer: authorization?.from, nonce: authorization?.nonce },
  };
}

/** The same for a free call (ap2 7.3). */
export function freePurchase(call: Buying, currency: string): Purchase {
  return { ...whatIsBought(call), price: { amount: '0', currency }, payment: undefined };
}

function whatIsBought({ resource, input }: Buying): Pick<Purchase, 'resourceId' | 'title' | 'input'> {
  return { resourceId: resource.id, title: resource.name, input };
}
