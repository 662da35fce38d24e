/** The buyers of a chaos run: each repeats its call until it has an end. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Hex } from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import { prepareTransaction } from './facilitator.ts';
import { isSettledAfter, type Post, RESOURCES } from './fleet.ts';
import type { Delivered } from './merchant.ts';
import type { Plan } from './plan.ts';
import { cancelCall, type SignedProof, signProof, signTransfer, spell, type Terms, transferCall } from './proof.ts';
import { type Seed, seedOf } from './seed.ts';
import { ADVERSARIES, type Answered, type CallStory, type Kind, type Line, type Target } from './story.ts';
import { CHANNELS, type Challenge, type Channel, type Reply, send } from './wire.ts';

/** What buyers share. */
export interface Market {
  readonly posts: readonly Post[];
  readonly chains: readonly ChainAccess[];
  readonly plan: Plan;
  /** Buyers no longer disconnect or leave. */
  faultsOver: boolean;
  /** Until when buyers go on trying, Unix milliseconds. */
  giveUpAt: number;
  /** A network that no 402 may offer to a request sent after `since`, Unix milliseconds. */
  removed: { readonly network: string; readonly since: number } | undefined;
}

/** Longest wait for a Retry-After, milliseconds: a run must stay short. */
const LONGEST_PAUSE_MS = 500;
/**
 * Between two attempts in any case, milliseconds: a gateway that restarts needs the processor more.
 */
const PAUSE_MS = [40, 200] as const;
const ABORT_WITHIN_MS = 60;
/** New proofs for one call. */
const MOST_PROOFS = 8;
/** Share of attempts on another channel than the buyer's own. */
const DETOURS = 0.15;
/** Share of answered lines that are sent once more. */
const ENCORES = 0.1;

/** A reply, and when what it replies to was sent. */
interface Sent {
  readonly reply: Reply;
  readonly sentAt: number;
}

/**
 * The strictest conforming client: the same proof again on network errors, 409 that may be retried
 * and 5xx; a new proof only on 402.
 */
class Buyer {
  readonly #market: Market;
  readonly account: PrivateKeyAccount;

  constructor(market: Market, account: PrivateKeyAccount) {
    this.#market = market;
    this.account = account;
  }

  /** Buys once; signs a new proof after each 402. */
  async buy(call: CallStory, seed: Seed, lifetimeMs?: number): Promise<void> {
    await this.pay(call, await this.ask(call, seed), seed, lifetimeMs);
  }

  /** Signs for a challenge, and for each that answers the proof; nothing where there is none. */
  async pay(call: CallStory, first: Challenge | undefined, seed: Seed, lifetimeMs?: number): Promise<void> {
    let challenge = first;
    for (let signed = 0; challenge !== undefined && signed < MOST_PROOFS; signed += 1) {
      const proof = await this.sign(call, challenge, seed.fork(`proof-${signed}`), lifetimeMs);
      challenge = await this.redeem(call, this.line(call, proof), seed);
    }
  }

  /** The challenge, or undefined when none came. */
  async ask(call: CallStory, seed: Seed): Promise<Challenge | undefined> {
    while (Date.now() < this.#market.giveUpAt) {
      const { removed } = this.#market;
      const sentAt = Date.now();
      const reply = await send(this.#gateway(seed), call.target, {}, channelOf(call, seed));
      if (reply.kind === 'challenge') {
        const shown = reply.challenge.accepts.map(({ network }) => network);
        if (removed !== undefined && sentAt > removed.since && shown.includes(removed.network))
          call.oddities.push(`${removed.network} is offered after its removal`);
        return reply.challenge;
      }
      if (reply.kind === 'answer' || reply.kind === 'refusal') {
        call.oddities.push(
          reply.kind === 'answer' ? 'answered without a proof' : `${reply.refusal.status} ${reply.refusal.code}`,
        );
        return undefined;
      }
      await this.#pause(reply, seed);
    }
    return undefined;
  }

  async sign(call: CallStory, challenge: Challenge, seed: Seed, lifetimeMs?: number): Promise<SignedProof> {
    const { extensions, ...bare } = challenge;
    const signed = call.echoes && extensions !== undefined ? challenge : bare;
    const terms = this.#terms(call, challenge, seed.fork('offer'));
    const proof = await signProof(this.account, terms, signed, seed, lifetimeMs);
    call.proofs.push(proof.story);
    return proof;
  }

  #terms({ kind }: CallStory, { accepts }: Challenge, seed: Seed): Terms {
    const accepted = seed.pick(accepts);
    const isIts = ({ chainId }: ChainAccess): boolean => accepted.network === `eip155:${chainId}`;
    const chain = this.#market.chains.find(isIts);
    if (chain === undefined) throw new Error(`an offer on ${accepted.network}`);
    const other = this.#market.chains.find((one) => !isIts(one));
    if (kind !== 'liar' || other === undefined) return { accepted, chain, paid: accepted, signedFor: chain };
    return { accepted, chain, paid: seed.pick(accepts), signedFor: other };
  }

  line(call: CallStory, proof: SignedProof, target: Target = call.target, spelling = 0): Line {
    const line: Line = { proof: proof.story, target, header: spell(proof, spelling), end: undefined };
    call.lines.push(line);
    return line;
  }

  /** Sends a proof until it has an end. @returns the challenge, when that is the end */
  async redeem(call: CallStory, line: Line, seed: Seed): Promise<Challenge | undefined> {
    const { plan } = this.#market;
    while (Date.now() < this.#market.giveUpAt) {
      const aborting = !this.#market.faultsOver && seed.chance(plan.aborts);
      const { reply, sentAt } = await this.#bring(call, line, seed, aborting);
      if (reply.kind === 'lost' && aborting && seed.chance(plan.leavers)) return undefined;
      if (reply.kind === 'again' || reply.kind === 'lost') await this.#pause(reply, seed);
      else {
        keep(line, reply, sentAt);
        if (reply.kind === 'answer' && seed.chance(ENCORES)) await this.#encore(call, line, seed);
        return reply.kind === 'challenge' ? reply.challenge : undefined;
      }
    }
    return undefined;
  }

  /** Sends an answered proof once more. */
  async #encore(call: CallStory, line: Line, seed: Seed): Promise<void> {
    const { reply, sentAt } = await this.#bring(call, line, seed, false);
    if (reply.kind === 'answer') line.proof.answers.push(answered(line, reply, sentAt));
    if (reply.kind === 'challenge') line.proof.challenges.push(reply.reason);
    if (reply.kind === 'refusal') line.proof.refusals.push(reply.refusal);
  }

  async #bring(call: CallStory, line: Line, seed: Seed, aborting: boolean): Promise<Sent> {
    const key = call.key === undefined ? {} : { 'idempotency-key': call.key };
    const headers = { 'payment-signature': line.header, ...key };
    const sentAt = Date.now();
    line.proof.lastSentAt = sentAt;
    line.proof.firstSentAt ??= sentAt;
    const leaving = new AbortController();
    const timer = aborting ? setTimeout(() => leaving.abort(), seed.between(0, ABORT_WITHIN_MS)) : undefined;
    const reply = await send(this.#gateway(seed), line.target, headers, channelOf(call, seed), leaving.signal);
    clearTimeout(timer);
    if (reply.kind === 'lost') line.proof.lostAt.push(Date.now());
    return { reply, sentAt };
  }

  #gateway(seed: Seed): string {
    return seed.pick(this.#market.posts).url;
  }

  async #pause(reply: Reply, seed: Seed): Promise<void> {
    const asked = reply.kind === 'again' ? reply.afterMs : 0;
    await delay(Math.min(asked, LONGEST_PAUSE_MS) + seed.between(...PAUSE_MS));
  }
}

function channelOf({ channel }: CallStory, seed: Seed): Channel {
  return seed.chance(DETOURS) ? seed.pick(CHANNELS) : channel;
}

function keep(line: Line, reply: Extract<Reply, { kind: 'answer' | 'challenge' | 'refusal' }>, sentAt: number): void {
  const { proof } = line;
  switch (reply.kind) {
    case 'answer':
      line.end = 'answered';
      proof.answers.push(answered(line, reply, sentAt));
      break;
    case 'challenge':
      line.end = 'challenged';
      proof.challenges.push(reply.reason);
      break;
    case 'refusal':
      line.end = 'refused';
      proof.refusals.push(reply.refusal);
  }
}

function answered({ target }: Line, reply: Extract<Reply, { kind: 'answer' }>, sentAt: number): Answered {
  return { sentAt, at: Date.now(), target, delivered: deliveredOf(reply) };
}

function deliveredOf({ body }: Extract<Reply, { kind: 'answer' }>): Delivered | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { resource, input, execution } = body as Partial<Delivered>;
  return resource === undefined || input === undefined || execution === undefined
    ? undefined
    : { resource, input, execution };
}

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
const PLAYS: Readonly<Record<Kind, (market: Market, buyer: Buyer, call: CallStory, seed: Seed) => Promise<void>>> = {
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
  cancel: (_market, buyer, call, seed) =>
    takeBack(buyer, call, seed, ({ chain, authorization: { nonce } }) => cancelCall(buyer.account, chain, nonce)),

  /** Pays and spends the nonce on itself. */
  to_self: (_market, buyer, call, seed) =>
    takeBack(buyer, call, seed, async ({ chain, authorization: { nonce, validBefore } }) => {
      const { address } = buyer.account;
      const authorization = { from: address, to: address, value: '1', validAfter: '0', validBefore, nonce };
      return transferCall(authorization, await signTransfer(buyer.account, chain, authorization));
    }),

  /** Signs the terms of either network for one of them, and says that it pays on the other. */
  async liar(_market, buyer, call, seed) {
    const challenge = await buyer.ask(call, seed);
    if (challenge === undefined) return;
    const proof = await buyer.sign(call, challenge, seed.fork('proof'));
    await buyer.redeem(call, buyer.line(call, proof), seed);
  },

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
  buyer: Buyer,
  call: CallStory,
  seed: Seed,
  write: (proof: SignedProof) => Promise<Hex>,
): Promise<void> {
  const challenge = await buyer.ask(call, seed);
  if (challenge === undefined) return;
  const proof = await buyer.sign(call, challenge, seed.fork('proof'));
  const transaction = await prepareTransaction(proof.chain, await write(proof), seed.fork('relayer'));
  const taken = delay(seed.between(0, TAKE_BACK_WITHIN_MS)).then(() => transaction.send());
  // Sent too late, it reverts; the judge accepts both outcomes.
  await Promise.all([buyer.redeem(call, buyer.line(call, proof), seed), taken]);
}

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
export async function gatherCrowd(market: Market): Promise<Crowd> {
  const { plan, chains } = market;
  const calls: CallStory[] = [];
  const buyers = Array.from({ length: plan.buyers }, (_, at) => {
    const account = privateKeyToAccount(seedOf(`${plan.seed}/buyer/${at}`).bytes32());
    return new Buyer(market, account);
  });
  await Promise.all(chains.flatMap(({ mint }) => buyers.map(({ account }) => mint(account.address, FUNDS_UNITS))));

  const open = (): CallStory => {
    const id = calls.length + 1;
    const seed = seedOf(`${plan.seed}/call/${id}`);
    const lies = chains.length > 1 && seedOf(`${plan.seed}/liar/${id}`).chance(plan.adversaries);
    const kind: Kind = ADVERSARIES.find(() => seed.chance(plan.adversaries)) ?? (lies ? 'liar' : 'honest');
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
