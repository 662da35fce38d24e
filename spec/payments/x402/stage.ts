import type { SignedTransaction } from '../../../src/payments/rail.ts';
import { type Chain, createChain } from '../../../src/payments/x402/chain/chain.ts';
import { createRpc, type Rpc } from '../../../src/payments/x402/chain/rpc.ts';
import { createLocalRail } from '../../../src/payments/x402/local/local-rail.ts';
import type { PaymentRail, PaymentRequirements, Proof } from '../../../src/payments/x402/wire/types.ts';
import { type Chain as LocalChain, startChain } from '../../../tools/local-world/chain.ts';
import { type ChainActors, chainActors } from './chain/chain-actors.ts';
import { offerFor, type Terms, termsFor } from './signing.ts';

/** A chain of its own with everything that reads it or settles on it. */
export interface Stage {
  readonly local: LocalChain;
  readonly rpc: Rpc;
  readonly chain: Chain;
  readonly terms: Terms;
  readonly offer: ReturnType<typeof offerFor>;
  readonly actors: ChainActors;
  readonly rail: PaymentRail;
  close(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const local = await startChain();
  const terms = termsFor(local.token, local.chainId);
  const rpc = createRpc(local.rpcUrl);
  const chain = createChain(rpc);
  return {
    local,
    rpc,
    chain,
    terms,
    offer: offerFor(terms),
    actors: chainActors(local, terms),
    rail: await createLocalRail({ rpc, chain, terms, privateKey: local.relayerKey }),
    async close() {
      await rpc.close();
      await local.stop();
    },
  };
}

/** Settles and keeps what was written ahead. */
export async function settleThrough(
  rail: PaymentRail,
  proof: Proof,
  offer: PaymentRequirements,
  history?: { readonly sentBefore: boolean },
) {
  const written: SignedTransaction[] = [];
  const outcome = await rail.settle(proof, offer, async (signed) => void written.push(signed), history);
  return { outcome, written };
}
