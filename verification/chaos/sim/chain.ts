/** The chain of the simulation. */

import type { Reading } from '../../../src/payments/rail.ts';

/** The state of an authorization on chain. */
type Use =
  | { readonly how: 'paid'; readonly at: number; readonly transaction: string }
  /** Cancelled by the payer, or paid to another payee. */
  | { readonly how: 'elsewhere'; readonly at: number };

/**
 * The chain: each nonce is used once, while its time is not over, and stays used. Blocks come every
 * second.
 */
export class SimChain {
  readonly #uses = new Map<string, Use>();
  readonly #ends = new Map<string, number>();
  readonly #now: () => number;
  /** Transfers to the payee by nonce. */
  readonly transfers = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** An authorization was signed; `validBefore` in Unix seconds. */
  signed(nonce: string, validBefore: number): void {
    this.#ends.set(nonce, validBefore);
  }

  validBefore(nonce: string): number {
    const ends = this.#ends.get(nonce);
    if (ends === undefined) throw new Error('an unsigned authorization');
    return ends;
  }

  /** A block takes the transfer, unless the nonce is used or its time over. */
  mine(nonce: string): 'mined' | 'used' | 'expired' {
    if (this.#uses.has(nonce)) return 'used';
    if (this.#head() >= this.validBefore(nonce)) return 'expired';
    this.#uses.set(nonce, { how: 'paid', at: this.#now(), transaction: transactionOf(nonce) });
    this.transfers.set(nonce, (this.transfers.get(nonce) ?? 0) + 1);
    return 'mined';
  }

  /** The payer uses the nonce for something else. */
  spendElsewhere(nonce: string): void {
    if (!this.#uses.has(nonce) && this.#head() < this.validBefore(nonce))
      this.#uses.set(nonce, { how: 'elsewhere', at: this.#now() });
  }

  paid(nonce: string): boolean {
    return this.#uses.get(nonce)?.how === 'paid';
  }

  used(nonce: string): boolean {
    return this.#uses.has(nonce);
  }

  expired(nonce: string): boolean {
    return this.#head() >= this.validBefore(nonce);
  }

  /** What a node shows that is `lagMs` behind. */
  read(nonce: string, lagMs: number): Reading {
    const seenAt = this.#now() - lagMs;
    const use = this.#uses.get(nonce);
    if (use !== undefined && use.at <= seenAt)
      return use.how === 'paid'
        ? { kind: 'settled', evidence: 'logs', transaction: use.transaction }
        : { kind: 'refused', evidence: 'elsewhere', reason: 'authorization_spent_elsewhere' };
    if (Math.floor(seenAt / 1_000) >= this.validBefore(nonce))
      return { kind: 'refused', evidence: 'expired', reason: 'authorization_expired' };
    return { kind: 'open' };
  }

  /** Time of the newest block, Unix seconds. */
  #head(): number {
    return Math.floor(this.#now() / 1_000);
  }
}

/**
 * The hash of a transfer; the same for every sender, because the gateway must not depend on the
 * sender.
 */
export function transactionOf(nonce: string): string {
  return `0x${nonce.slice(2).split('').reverse().join('')}`;
}
