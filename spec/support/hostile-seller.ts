/** A gateway with a scripted facilitator, and an official one on the same chain. */

import { type Facilitator, startFacilitator } from './facilitator.ts';
import { type HostileFacilitator, startHostileFacilitator } from './hostile-facilitator.ts';
import { openSeller, type Seller } from './seller.ts';

/** What runs. The gateway asks the scripted facilitator; scripts may relay to the official one. */
export interface HostileSeller {
  readonly seller: Seller;
  readonly hostile: HostileFacilitator;
  readonly official: Facilitator;
  close(): Promise<void>;
}

export async function openHostileSeller(): Promise<HostileSeller> {
  const hostile = await startHostileFacilitator('eip155:31337');
  const seller = await openSeller({ facilitator: { mode: 'remote', url: hostile.url } });
  const official = await startFacilitator(seller.chain);
  return {
    seller,
    hostile,
    official,
    async close() {
      await seller.close();
      await Promise.all([hostile.stop(), official.stop()]);
    },
  };
}
