/** All buyers of a run. */

import { privateKeyToAccount } from 'viem/accounts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import { PLAYS } from './adversary.ts';
import { Buyer, type Market } from './buyer.ts';
import { RESOURCES } from './fleet.ts';
import { seedOf } from './seed.ts';
import { ADVERSARIES, type CallStory, type Kind, type Line } from './story.ts';
import { CHANNELS } from './wire.ts';

/** All buyers and the stories of their calls. */
export interface Crowd {
  readonly calls: readonly CallStory[];
  /**
   * Buys, as many at a time as planned, until `enough` is true. Resolves when the last call has
   * ended or its buyer has left.
   */
  buy(enough: () => boolean): Promise<void>;
  /**
   * Buyers without an answer send their proofs again. Honest ones sign anew after a 402: a proof
   * that was not settled may be over by then.
   */
  comeBack(): Promise<void>;
}

/** Base units for each buyer: more than a run can cost. */
const FUNDS_UNITS = 10n ** 12n;

/** Gives every buyer a key and tokens. */
export async function gatherCrowd(market: Market, chain: ChainAccess): Promise<Crowd> {
  const { plan } = market;
  const calls: CallStory[] = [];
  const buyers = Array.from({ length: plan.buyers }, (_, at) => {
    const account = privateKeyToAccount(seedOf(`${plan.seed}/buyer/${at}`).bytes32());
    return new Buyer(market, account);
  });
  await Promise.all(buyers.map(({ account }) => chain.mint(account.address, FUNDS_UNITS)));

  const open = (): CallStory => {
    const id = calls.length + 1;
    const seed = seedOf(`${plan.seed}/call/${id}`);
    const kind: Kind = ADVERSARIES.find(() => seed.chance(plan.adversaries)) ?? 'honest';
    const key = seed.chance(plan.keys) ? `key-${seed.bytes32()}` : undefined;
    const target = { resource: seed.pick(RESOURCES), input: `call-${id}` };
    const channel = seedOf(`${plan.seed}/channel/${id}`).pick(CHANNELS);
    const echoes = key === undefined && seedOf(`${plan.seed}/token/${id}`).chance(plan.tokens);
    const call: CallStory = { id, kind, target, channel, key, echoes, proofs: [], lines: [], oddities: [] };
    calls.push(call);
    return call;
  };
  return {
    calls,
    async buy(enough) {
      const one = async (buyer: Buyer): Promise<void> => {
        while (!enough()) {
          const call = open();
          await PLAYS[call.kind](market, buyer, call, seedOf(`${plan.seed}/play/${call.id}`));
        }
      };
      await Promise.all(buyers.map(one));
    },
    async comeBack() {
      const byAddress = new Map<string, Buyer>(buyers.map((buyer) => [buyer.account.address, buyer]));
      const late = calls.flatMap((call) => call.lines.filter(isOpen).map((line) => ({ call, line })));
      const seed = seedOf(`${plan.seed}/late`);
      await inTurns(late, plan.buyers, async ({ call, line }) => {
        // Counted from when it comes: many come, a few at a time.
        market.giveUpAt = Date.now() + plan.settleDownMs;
        const [buyer, own] = [byAddress.get(line.proof.payer), seed.fork(String(call.id))];
        const challenge = await buyer?.redeem(call, line, own);
        if (call.kind === 'honest') await buyer?.pay(call, challenge, own);
      });
    },
  };
}

/** Without an end, or without an answer: a refusal of a lost second may no longer hold. */
function isOpen({ end, proof }: Line): boolean {
  return end === undefined || (end === 'refused' && proof.answers.length === 0);
}

async function inTurns<T>(all: readonly T[], atOnce: number, act: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all];
  const worker = async (): Promise<void> => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await act(one);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
