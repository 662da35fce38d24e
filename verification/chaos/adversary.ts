/** Buyers that want more than they paid for. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Hex } from 'viem';
import { prepareTransaction } from './broadcast.ts';
import type { Buyer, Market } from './buyer.ts';
import { isSettledAfter, RESOURCES } from './fleet.ts';
import type { SignedProof } from './proof.ts';
import type { Seed } from './seed.ts';
import type { CallStory, Kind } from './story.ts';
import { cancelCall, signTransfer, transferCall } from './token.ts';

/**
 * Lifetimes of authorizations of `hasty` buyers, milliseconds: the gateway requires 6 s to be left,
 * and 65 s more where the backend answers first.
 */
const HASTE_MS = [7_000, 12_000] as const;
const LONGER_MS = 65_000;
/** When the payer spends or cancels its nonce, milliseconds after it sent the proof. */
const TAKE_BACK_WITHIN_MS = 150;
const COPIES = [3, 6] as const;

/** Makes a call as its kind of buyer does. */
export const PLAYS: Readonly<
  Record<Kind, (market: Market, buyer: Buyer, call: CallStory, seed: Seed) => Promise<void>>
> = {
  honest: (_market, buyer, call, seed) => buyer.buy(call, seed),

  /** Honest, but with an authorization that ends soon. */
  hasty: (_market, buyer, call, seed) =>
    buyer.buy(call, seed, seed.between(...HASTE_MS) + (isSettledAfter(call.target.resource) ? LONGER_MS : 0)),

  /** One proof for two purchases, at the same time and afterwards. */
  async two_inputs(_market, buyer, call, seed) {
    const challenge = await buyer.ask(call, seed);
    if (challenge === undefined) return;
    // An echo of the resource would bind the proof to one purchase; the echo is optional.
    const proof = withoutResource(await buyer.sign(call, challenge, seed.fork('proof')));
    // A proof for one order of call and money does not buy a resource that has the other.
    const alike = RESOURCES.filter((one) => isSettledAfter(one) === isSettledAfter(call.target.resource));
    const resource = seed.chance(0.5) ? call.target.resource : seed.pick(alike);
    const other = { resource, input: `${call.target.input}-other` };
    const sides = [call.target, other].map((target) => buyer.line(call, proof, target));
    await Promise.all(sides.map((line, at) => buyer.redeem(call, line, seed.fork(`side-${at}`))));
    await Promise.all(sides.map((line, at) => buyer.redeem(call, line, seed.fork(`after-${at}`))));
  },

  /** Pays and cancels the authorization. */
  cancel: (market, buyer, call, seed) =>
    takeBack(market, buyer, call, seed, (nonce) => cancelCall(buyer.account, market.chain, nonce)),

  /** Pays and spends the nonce on itself. */
  to_self: (market, buyer, call, seed) =>
    takeBack(market, buyer, call, seed, async (nonce, validBefore) => {
      const { address } = buyer.account;
      const authorization = { from: address, to: address, value: '1', validAfter: '0', validBefore, nonce };
      return transferCall(authorization, await signTransfer(buyer.account, market.chain, authorization));
    }),

  /** Several copies of one proof in different spellings, all at once. */
  async copies(_market, buyer, call, seed) {
    const challenge = await buyer.ask(call, seed);
    if (challenge === undefined) return;
    const proof = await buyer.sign(call, challenge, seed.fork('proof'));
    const count = Math.floor(seed.between(...COPIES));
    const lines = Array.from({ length: count }, (_, spelling) => buyer.line(call, proof, call.target, spelling));
    await Promise.all(lines.map((line, at) => buyer.redeem(call, line, seed.fork(`copy-${at}`))));
  },
};

function withoutResource(proof: SignedProof): SignedProof {
  return { ...proof, payload: { ...proof.payload, resource: undefined } };
}

async function takeBack(
  { chain }: Market,
  buyer: Buyer,
  call: CallStory,
  seed: Seed,
  write: (nonce: Hex, validBefore: string) => Promise<Hex>,
): Promise<void> {
  const challenge = await buyer.ask(call, seed);
  if (challenge === undefined) return;
  const proof = await buyer.sign(call, challenge, seed.fork('proof'));
  const data = await write(proof.authorization.nonce, proof.authorization.validBefore);
  const transaction = await prepareTransaction(chain, data, seed.fork('relayer'));
  const taken = delay(seed.between(0, TAKE_BACK_WITHIN_MS)).then(() => transaction.send());
  // Sent too late, it reverts; the judge accepts both outcomes.
  await Promise.all([buyer.redeem(call, buyer.line(call, proof), seed), taken]);
}
