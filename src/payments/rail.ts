import type { PaidEvidence, WorthlessEvidence } from './ledger/ledger.ts';

/**
 * What every way of moving money has in common, whatever protocol its proofs and offers are written
 * in: `Payload` and `Offer` are that protocol's own types.
 */

/** A proof that passed the local checks. */
export interface Proof<Payload> {
  readonly payId: string;
  readonly payload: Payload;
  /**
   * 65 bytes recovered to `from` here; `contract`: left to the chain (ERC-1271, or the local check
   * is switched off).
   */
  readonly signedBy: 'account' | 'contract';
}

/**
 * `nonceSpent`: the refusal says that the authorization was used before, which may mean that we
 * were paid. `unfunded`: nothing is wrong with the proof, and who would have to send it cannot pay
 * the gas now.
 */
export type RailVerdict =
  | { readonly kind: 'valid' }
  | { readonly kind: 'refused'; readonly reason: string; readonly nonceSpent: boolean }
  | { readonly kind: 'unfunded'; readonly cause: string }
  | { readonly kind: 'unavailable'; readonly cause: string };

/**
 * The authorization moved the money to us. The hash is unknown only when the evidence is `nonce`.
 */
export interface Settled {
  readonly kind: 'settled';
  readonly evidence: PaidEvidence;
  readonly transaction?: string;
}

/**
 * A promise that the authorization can never move money to us any more (contract 4.3, the 402
 * promise).
 */
export interface Worthless {
  readonly kind: 'refused';
  readonly reason: string;
  readonly evidence: WorthlessEvidence;
  readonly transaction?: string;
}

/**
 * Nothing of this payment is on its way: whatever was ever signed for it, every node that was asked
 * to send it said readably that it keeps nothing of it, and nothing else was tried. `transaction`
 * is the last one that was signed, if one was.
 */
export interface Withdrawn {
  readonly kind: 'withdrawn';
  readonly cause: string;
  readonly transaction?: string;
}

/**
 * Everything that is neither proven paid, worthless nor unsent is `uncertain`; `failed`: its
 * transaction had its block and moved nothing.
 */
export type Settlement =
  | Settled
  | Worthless
  | Withdrawn
  | { readonly kind: 'uncertain'; readonly cause: string; readonly transaction?: string; readonly failed?: true };

/**
 * What the chain shows for an authorization. `open`: unspent and still valid, so sending it (again)
 * is safe; `unknown`: no reading.
 */
export type Reading =
  | Settled
  | Worthless
  | { readonly kind: 'open' }
  | { readonly kind: 'unknown'; readonly cause: string };

/** A transaction that is signed and not yet sent. */
export interface SignedTransaction {
  readonly hash: string;
  readonly raw: string;
}

/** What is known about a payment before this attempt to settle it. */
export interface SettlementHistory {
  /**
   * True when an earlier attempt may have sent it. A refusal of this attempt then proves nothing
   * (the earlier one may be why the payer's balance is gone), so only the chain can make it
   * `refused`.
   */
  readonly sentBefore: boolean;
  /**
   * True when what an earlier attempt signed was withdrawn. Nothing is known to be under way then,
   * but only the chain can make it `refused`: a node may hold the transaction although it said no.
   */
  readonly withdrawnBefore?: boolean;
  /**
   * What the record is known by, 32 bytes as hex without 0x: a rail that sends transactions of its
   * own puts it behind the call, so that the chain says whose the payment was after a loss of the
   * store.
   */
  readonly mark?: string;
}

/**
 * How a node lies by silence. `stall`: it shows no new blocks. `clock`: our own clock is wrong by
 * the blocks, so every window is judged wrongly. `missing`: it shows that a payment's transaction
 * succeeded and not what that logged, so no payment can be told from none.
 */
export const CHAIN_FAULTS = ['stall', 'clock', 'missing'] as const;
export type ChainFaultKind = (typeof CHAIN_FAULTS)[number];

/** The cause is for the log. */
export interface ChainFault {
  readonly kind: ChainFaultKind;
  readonly cause: string;
}

/** What the readings of a chain say of the node that gave them. */
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

/**
 * A way money moves. It can refuse what the local checks accepted, never accept what they refused.
 */
export interface PaymentRail<Payload, Offer> {
  readonly facilitator: 'local' | 'remote';
  /** Whether `reconcile` can ask a chain; without one it knows only what the facilitator says. */
  readonly seesChain: boolean;
  /** Deadline 5 s. Moves nothing. */
  verify(proof: Proof<Payload>, offer: Offer): Promise<RailVerdict>;
  /**
   * Deadline 60 s. `writeAhead` is awaited between signing and broadcasting; when it fails nothing
   * is sent.
   */
  settle(
    proof: Proof<Payload>,
    offer: Offer,
    writeAhead: (transaction: SignedTransaction) => Promise<void>,
    history?: SettlementHistory,
  ): Promise<Settlement>;
  /**
   * What the chain shows for this authorization now (deadline 3 s). `knownTransaction` from an
   * earlier attempt, if any. Without a chain, and only for what may have been sent before, a
   * facilitator's "nonce already used" counts as paid.
   */
  reconcile(
    proof: Proof<Payload>,
    offer: Offer,
    knownTransaction: string | undefined,
    history?: SettlementHistory,
  ): Promise<Reading>;
  /**
   * The mark of the transaction that paid, when this rail sent it; undefined when it did not, or
   * sent it without one. Anyone may submit an authorization with any mark, so nothing of another
   * sender is believed. Absent where a rail sends nothing itself.
   * @throws when the node does not answer
   */
  markOf?(transaction: string): Promise<string | undefined>;
  /** For readiness: undefined when all is well. */
  check(): Promise<RailFault | undefined>;
  /**
   * What is known to be wrong with the chain's node or with our clock, and how old its newest block
   * is. Absent without a chain.
   */
  chainState?(): ChainState;
  /**
   * How many payments the gas lasts for, as `check` found last. Undefined before, and absent where
   * somebody else pays the gas.
   */
  transfersLeft?(): number | undefined;
}
