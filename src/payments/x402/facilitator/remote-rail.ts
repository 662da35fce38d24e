/**
 * The rail without a key in the gateway: facilitators settle, the chain confirms if there is one.
 */

import type { RailFault, RailVerdict, Reading, Settlement } from '../../rail.ts';
import { type Chain, confirmPayment, decided, evidenceQuery, paysOffer, readingOf } from '../chain/chain.ts';
import { peersInOrder } from '../chain/http-json.ts';
import { nodeFailure } from '../chain/node.ts';
import type { EntryOf } from '../wire/offers.ts';
import { VALID_BEFORE_MARGIN_SECONDS } from '../wire/proof.ts';
import { isNonceSpent, NONCE_ALREADY_USED, refusedBeforeBroadcast, SETTLEMENT_PENDING } from '../wire/reasons.ts';
import type { Confirmation, FacilitatorConfig } from '../wire/settings.ts';
import type { PaymentRail, PaymentRequirements, Proof } from '../wire/types.ts';
import { connectFacilitator, type Facilitator, type SettleAnswer } from './facilitator.ts';

/** Deadlines of contract 4.2 for all facilitators together, milliseconds. */
const VERIFY_DEADLINE_MS = 5_000;
const SETTLE_DEADLINE_MS = 60_000;
/** How long the chain may take to show what the facilitator claims, milliseconds. */
const CONFIRM_DEADLINE_MS = 10_000;
/** Longest reading while a buyer or the next facilitator waits, milliseconds. */
const GLANCE_DEADLINE_MS = 1_500;
const DEADLINES = { verifyMs: VERIFY_DEADLINE_MS, settleMs: SETTLE_DEADLINE_MS, confirmMs: CONFIRM_DEADLINE_MS };

export interface RemoteRailDeps {
  readonly facilitator: Extract<FacilitatorConfig, { readonly mode: 'remote' }>;
  /** CAIP-2, for the readiness check. */
  readonly network: string;
  /** Undefined without an RPC URL: the facilitator's answer then counts as in contract 4.3. */
  readonly chain: Chain | undefined;
  /** `receipt` unless given; without effect when there is no chain. */
  readonly confirm?: Confirmation;
  /** The confirmations that `chain` was opened with; 1 unless given. */
  readonly confirmations?: number;
  readonly now?: () => number;
  /** Shorter in tests of deadlines. */
  readonly deadlines?: { readonly verifyMs: number; readonly settleMs: number; readonly confirmMs: number };
}

interface RemoteRail extends PaymentRail {
  /**
   * Takes over the logins at the facilitators, whose order and addresses stay, and the source of
   * catalogue entries, which gives none before.
   */
  renew(facilitator: RemoteRailDeps['facilitator'], entryOf: EntryOf): void;
  close(): Promise<void>;
}

/** Creates the rail: `confirm` and `chain` decide whether claims of facilitators are checked. */
export function createRemoteRail(deps: RemoteRailDeps): RemoteRail {
  const {
    facilitator,
    network,
    chain,
    confirm = 'receipt',
    confirmations = 1,
    now = Date.now,
    deadlines = DEADLINES,
  } = deps;
  let endpoints = [facilitator, ...facilitator.fallbacks];
  let entryOf: EntryOf = () => undefined;
  const failover = createFailover(
    endpoints.map(({ url, auth }, place) =>
      connectFacilitator(
        url,
        () => endpoints[place]?.auth ?? auth,
        (payload) => entryOf(payload),
      ),
    ),
  );

  return {
    facilitator: 'remote',
    seesChain: () => chain !== undefined,
    async verify(proof, offer) {
      if (!paysOffer(proof, offer)) return refusedVerdict('invalid_payment_requirements', false);
      const causes: string[] = [];
      for (const turn of failover.turns(deadlines.verifyMs)) {
        const answer = await turn.ask((facilitator, ms) => facilitator.verify(proof, offer, ms));
        if (answer.kind === 'valid') return answer;
        if (answer.kind === 'invalid') return refusedByFacilitator(answer.reason, proof, offer, chain);
        causes.push(`${turn.name}: ${answer.cause}`);
      }
      return { kind: 'unavailable', cause: causes.join('; ') };
    },

    async settle(proof, offer, _writeAhead, history = { sentBefore: false }) {
      // Nothing is sent; not "refused", because what an earlier attempt sent is unknown here.
      if (!paysOffer(proof, offer)) return { kind: 'uncertain', cause: 'the authorization does not pay this offer' };
      const ends = performance.now() + deadlines.settleMs;
      let { sentBefore, transaction } = history;
      let answer: SettleAnswer | undefined;
      for (const turn of failover.turns(deadlines.settleMs)) {
        // The same payload cannot pay twice; once the chain decides, no other facilitator is asked.
        if (answer !== undefined && chain !== undefined) {
          const query = evidenceQuery(proof, offer, transaction);
          const shown = decided(await chain.readEvidence(query, GLANCE_DEADLINE_MS), query);
          if (shown !== undefined) return caused(shown, sentBefore);
        }
        answer = await turn.ask((facilitator, ms) => facilitator.settle(proof, offer, ms));
        // A transaction named with a spent nonce may not be one of this settlement.
        if (answer.kind !== 'denied' || !isNonceSpent(answer.reason)) transaction = answer.transaction ?? transaction;
        if (answer.kind !== 'none') break;
        sentBefore ||= answer.unsent !== true;
      }
      if (answer === undefined) return { kind: 'uncertain', cause: 'no facilitator was asked' };
      if (chain === undefined) return takenAtItsWord(answer, sentBefore, transaction);
      if (confirm === 'facilitator' && answer.kind === 'claimed')
        return { kind: 'settled', evidence: 'claim', transaction: answer.transaction };
      const { cause, maySettleSoon } = unproven(answer);
      // Further blocks need more time.
      const confirmMs = confirmations > 1 ? deadlines.settleMs : deadlines.confirmMs;
      const waitMs = maySettleSoon ? Math.min(confirmMs, ends - performance.now()) : 0;
      const shown = await confirmPayment(chain, evidenceQuery(proof, offer, transaction), waitMs, cause);
      return caused(shown, sentBefore || mayHaveSent(answer));
    },

    async reconcile(proof, offer, { sentBefore, transaction } = { sentBefore: false }) {
      if (chain !== undefined)
        return caused(await readingOf(chain, evidenceQuery(proof, offer, transaction)), sentBefore);
      const left = Number(proof.payload.payload.authorization.validBefore) - now() / 1_000;
      // The nonce is the chain's own idempotency key: the same payload may be sent again.
      if (left >= VALID_BEFORE_MARGIN_SECONDS) return { kind: 'open' };
      return { kind: 'unknown', cause: 'there is no RPC URL to ask the chain' };
    },

    async check(): Promise<RailFault | undefined> {
      const [{ causes, of }, chainFault] = await Promise.all([failover.faults(network), faultOf(chain)]);
      const cause = [...causes, ...(chainFault === undefined ? [] : [chainFault])].join('; ');
      if (cause === '') return undefined;
      // A confirmation by receipts needs the node: without it nothing can be settled.
      const serves = causes.length < of && (chainFault === undefined || confirm === 'facilitator');
      return { found: serves ? 'degraded' : 'unreachable', cause };
    },
    renew(renewed, catalogued) {
      endpoints = [renewed, ...renewed.fallbacks];
      entryOf = catalogued;
    },
    close: () => failover.close(),
  };
}

/**
 * Any refusal may hide a spent nonce: a payer who has just paid us may have nothing left, and not
 * every facilitator looks for the true reason. With a chain a refusal that names none needs a
 * reading; without a reading there is no verdict.
 */
async function refusedByFacilitator(
  reason: string,
  proof: Proof,
  offer: PaymentRequirements,
  chain: Chain | undefined,
): Promise<RailVerdict> {
  if (chain === undefined || isNonceSpent(reason)) return refusedVerdict(reason, isNonceSpent(reason));
  const evidence = await chain.readEvidence(evidenceQuery(proof, offer), GLANCE_DEADLINE_MS);
  switch (evidence.kind) {
    case 'paid':
      return refusedVerdict(NONCE_ALREADY_USED, true);
    case 'unknown':
      return { kind: 'unavailable', cause: `refused (${reason}), and the chain does not show why: ${evidence.cause}` };
    case 'worthless':
      return refusedVerdict(evidence.reason, false);
    case 'open':
      return refusedVerdict(reason, false);
  }
}

function refusedVerdict(reason: string, nonceSpent: boolean): RailVerdict {
  return { kind: 'refused', reason, nonceSpent };
}

/**
 * Whether a facilitator may have paid by a transaction that it did not name: by one that replaced
 * the named one, or by one that it names later.
 */
function mayHaveSent(answer: SettleAnswer): boolean {
  return answer.kind !== 'denied' || answer.reason === SETTLEMENT_PENDING;
}

/** Gives `by: 'unknown'` to a payment by an unnamed transaction that may be ours. */
function caused<Shown extends Settlement | Reading>(shown: Shown, mayBeOurs: boolean): Shown {
  return shown.kind === 'settled' && shown.by !== undefined && mayBeOurs ? { ...shown, by: 'unknown' } : shown;
}

/**
 * Decides without a chain: a claim counts, and a definite refusal counts when nothing was sent
 * before. Any other answer leaves the outcome open. A used nonce proves nothing: it may be
 * cancelled, or spent on another payee.
 * @param transaction The last hash that any facilitator named.
 */
function takenAtItsWord(answer: SettleAnswer, sentBefore: boolean, transaction: string | undefined): Settlement {
  if (answer.kind === 'claimed') return { kind: 'settled', evidence: 'claim', transaction: answer.transaction };
  if (answer.kind === 'denied') {
    const { reason, namedTransaction } = answer;
    if (!sentBefore && !namedTransaction && refusedBeforeBroadcast(reason))
      return { kind: 'refused', reason, evidence: 'unsent' };
  }
  const { cause } = unproven(answer);
  return { kind: 'uncertain', cause, ...(transaction === undefined ? {} : { transaction }) };
}

/** The cause if the chain does not decide, and whether it may decide soon. */
function unproven(answer: SettleAnswer): { readonly cause: string; readonly maySettleSoon: boolean } {
  const named = answer.transaction !== undefined;
  switch (answer.kind) {
    case 'claimed':
      return { cause: 'claimed by the facilitator, not shown by the chain', maySettleSoon: true };
    case 'denied': {
      const { reason } = answer;
      const underWay = reason === SETTLEMENT_PENDING || isNonceSpent(reason);
      return { cause: `the facilitator answered ${reason}`, maySettleSoon: named || underWay };
    }
    case 'none':
      return { cause: answer.cause, maySettleSoon: named };
  }
}

async function faultOf(chain: Chain | undefined): Promise<string | undefined> {
  try {
    await chain?.head();
    return undefined;
  } catch (error) {
    return nodeFailure(error);
  }
}

/** How long a facilitator that gave no verdict is asked last, milliseconds. */
export const STEP_BACK_MS = 10_000;

/** One facilitator's turn within a call that all of them could answer. */
interface Turn {
  readonly name: string;
  /** The time left is shared by this facilitator and those still to come. */
  ask<Answer extends { readonly kind: string }>(
    question: (facilitator: Facilitator, deadlineMs: number) => Promise<Answer>,
  ): Promise<Answer>;
}

/**
 * The configured facilitators in their order.
 * @param now Milliseconds of a monotonic clock.
 */
export function createFailover(facilitators: readonly Facilitator[], now: () => number = () => performance.now()) {
  const { order, failed, answered } = peersInOrder(facilitators, STEP_BACK_MS, now);
  return {
    /**
     * One turn for each, within `deadlineMs`, until the caller has a verdict and stops. A refusal
     * is a verdict and changes no order.
     */
    *turns(deadlineMs: number): Generator<Turn> {
      const ends = now() + deadlineMs;
      for (const [place, facilitator] of order().entries()) {
        if (place > 0 && ends - now() < 1) return;
        yield {
          name: facilitator.name,
          async ask(question) {
            const answer = await question(facilitator, (ends - now()) / (facilitators.length - place));
            (answer.kind === 'none' ? failed : answered)(facilitator);
            return answer;
          },
        };
      }
    },
    /** The causes of those that cannot serve `exact` on this network, and the number of all. */
    async faults(network: string) {
      const found = await Promise.all(
        facilitators.map(async (facilitator) => {
          const cause = await facilitator.fault(network);
          return cause === undefined ? [] : [`${facilitator.name}: ${cause}`];
        }),
      );
      return { causes: found.flat(), of: facilitators.length };
    },
    close: async () => {
      await Promise.all(facilitators.map((facilitator) => facilitator.close()));
    },
  };
}
