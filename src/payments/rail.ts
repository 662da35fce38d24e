/**
 * The port of a way to move money, for proofs and offers of any protocol: `Payload` and `Offer` are
 * the types of that protocol. The settlement uses it, folders of payments/x402 implement it.
 */

import type { PaidEvidence, WorthlessEvidence } from './ledger/ledger.ts';

/** A proof that passed the local checks. */
export interface Proof<Payload> {
  readonly payId: string;
  readonly payload: Payload;
  /** `account`: a local check recovered `from`; `contract`: the chain or the rail judges it. */
  readonly signedBy: 'account' | 'contract';
}

/**
 * `nonceSpent`: the refusal states that the authorization was used before, so it may have paid us.
 * `unfunded`: the proof is right, and the account that would send it cannot pay the gas now.
 */
export type RailVerdict =
  | { readonly kind: 'valid' }
  | { readonly kind: 'refused'; readonly reason: string; readonly nonceSpent: boolean }
  | { readonly kind: 'unfunded'; readonly cause: string }
  | { readonly kind: 'unavailable'; readonly cause: string };

/**
 * The authorization moved the money to us. `by`: who may have caused the transaction. Absent: this
 * store. `others`: another store or seller with the same payee. `unknown`: perhaps an attempt of
 * this store whose end it does not know.
 */
export interface Settled {
  readonly kind: 'settled';
  readonly evidence: PaidEvidence;
  readonly transaction: string;
  readonly by?: 'others' | 'unknown' | undefined;
}

/**
 * The authorization can never move money to us any more (contract 4.3, the 402 promise).
 * `unclaimed`: it has moved the money, for another store or seller.
 */
export interface Worthless {
  readonly kind: 'refused';
  readonly reason: string;
  readonly evidence: WorthlessEvidence;
  readonly transaction?: string;
}

/**
 * No transaction of this payment is on its way: each node that was asked to send one answered
 * readably that it does not keep it, and nothing else was tried. `transaction` is the last one that
 * was signed, if any. `provider_unavailable`: nothing could be asked or sent.
 */
export interface Withdrawn {
  readonly kind: 'withdrawn';
  readonly reason: 'relayer_unfunded' | 'provider_unavailable';
  readonly cause: string;
  readonly transaction?: string;
}

/** `uncertain`: each other end. `failed`: the transaction is in a block and moved nothing. */
export type Settlement =
  | Settled
  | Worthless
  | Withdrawn
  | { readonly kind: 'uncertain'; readonly cause: string; readonly transaction?: string; readonly failed?: true };

/** What the chain shows for an authorization. `open`: unspent and valid, so it may be sent. */
export type Reading =
  | Settled
  | Worthless
  | { readonly kind: 'open' }
  | { readonly kind: 'unknown'; readonly cause: string };

/** A transaction that is signed and not yet sent. */
export interface SignedTransaction {
  readonly hash: string;
  /** Its bytes; absent for a batch, because each of its payments would keep them. */
  readonly raw?: string;
}

/** What is known about a payment before this attempt to settle it. */
export interface SettlementHistory {
  /**
   * An earlier attempt may have sent it. A refusal of this attempt proves nothing then (the earlier
   * one may have spent the payer's balance), so only the chain can make it `refused`.
   */
  readonly sentBefore: boolean;
  /**
   * The transaction of an earlier attempt was withdrawn. Nothing is known to be under way, but only
   * the chain can make the payment `refused`: a node may hold a transaction that it refused.
   */
  readonly withdrawnBefore?: boolean;
  /**
   * 32 bytes as hex without 0x. A rail that sends its own transactions appends it to the calldata,
   * which then names the record and its store on the chain.
   */
  readonly mark?: string;
  /** A transaction of an earlier attempt. */
  readonly transaction?: string | undefined;
}

/**
 * Faults of a node that answers. `stall`: it shows no new blocks. `clock`: our clock differs from
 * the blocks, so each window is judged wrongly. `missing`: it shows that a transaction succeeded
 * and not its logs, so no payment can be recognised.
 */
export const CHAIN_FAULTS = ['stall', 'clock', 'missing'] as const;
export type ChainFaultKind = (typeof CHAIN_FAULTS)[number];

/** One such fault; the cause is for the log. */
export interface ChainFault {
  readonly kind: ChainFaultKind;
  readonly cause: string;
}

/** What the readings of a chain show about its node. */
export interface ChainState {
  readonly faults: readonly ChainFault[];
  /** Milliseconds since a new head was first seen. Undefined before. */
  readonly headAgeMs: number | undefined;
}

/** What is wrong with a provider. `degraded`: it still serves. The cause is for the log. */
export interface RailFault {
  readonly found: 'degraded' | 'unreachable';
  readonly cause: string;
}

/** The facts for metrics that are of one network. */
export interface NetworkFacts {
  /** The faults of the chain's node and of our clock, and the age of its newest block. */
  chainState?(): ChainState;
  /** Payments that the gas lasts for, as `check` found last; absent where another pays the gas. */
  transfersLeft?(): number | undefined;
}

/** A way to move money. It can refuse what the local checks accepted, but not the reverse. */
export interface PaymentRail<Payload, Offer> extends NetworkFacts {
  readonly facilitator: 'local' | 'remote';
  /** Whether `reconcile` asks a chain; otherwise it has only the facilitator's claims. */
  seesChain(offer: Offer): boolean;
  /** Deadline 5 s. Moves nothing. */
  verify(proof: Proof<Payload>, offer: Offer): Promise<RailVerdict>;
  /**
   * Deadline 60 s. `writeAhead` runs before each broadcast, also before one with higher fees; when
   * it fails, that broadcast does not carry this payment.
   */
  settle(
    proof: Proof<Payload>,
    offer: Offer,
    writeAhead: (transaction: SignedTransaction) => Promise<void>,
    history?: SettlementHistory,
  ): Promise<Settlement>;
  /**
   * Reads what the chain shows for this authorization now, deadline 3 s. Without a chain the
   * reading is `open` or `unknown`. `history`: absent when this store has sent nothing.
   */
  reconcile(proof: Proof<Payload>, offer: Offer, history?: SettlementHistory): Promise<Reading>;
  /**
   * The mark of this payment in the transaction that paid, when this rail sent it with one;
   * otherwise undefined, because another sender may put any mark. Absent where a rail sends nothing
   * itself.
   * @throws when the node does not answer
   */
  markOf?(transaction: string, proof: Proof<Payload>, offer: Offer): Promise<string | undefined>;
  /**
   * Whether the payee has sent this payment back: the nonce of its refund is used or cancelled.
   * Absent where no chain is asked.
   * @throws when the node does not answer
   */
  sentBack?(proof: Proof<Payload>, offer: Offer): Promise<boolean>;
  /** For readiness: undefined when all is well. */
  check(): Promise<RailFault | undefined>;
  /** In place of its own facts those of each network (CAIP-2), where it has several rails. */
  readonly perNetwork?: readonly (NetworkFacts & { readonly network: string })[];
}
