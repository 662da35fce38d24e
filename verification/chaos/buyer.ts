/** A buyer of a chaos run, which repeats a call until it has an end. */

import { setTimeout as delay } from 'node:timers/promises';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
import type { Post } from './fleet.ts';
import type { Delivered } from './merchant.ts';
import type { Plan } from './plan.ts';
import { type SignedProof, signProof, spell } from './proof.ts';
import type { Seed } from './seed.ts';
import type { Answered, CallStory, Line, Target } from './story.ts';
import { CHANNELS, type Challenge, type Channel, type Reply, send } from './wire.ts';

/** What buyers share. */
export interface Market {
  readonly posts: readonly Post[];
  readonly chain: ChainAccess;
  readonly plan: Plan;
  /** Buyers no longer disconnect or leave. */
  faultsOver: boolean;
  /** Until when buyers go on trying, Unix milliseconds. */
  giveUpAt: number;
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
export class Buyer {
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
      const reply = await send(this.#gateway(seed), call.target, {}, channelOf(call, seed));
      if (reply.kind === 'challenge') return reply.challenge;
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
    const proof = await signProof(this.account, this.#market.chain, signed, seed, lifetimeMs);
    call.proofs.push(proof.story);
    return proof;
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
