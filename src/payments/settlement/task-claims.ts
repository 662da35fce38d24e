/** The port of A2A task claims: which payment a waiting task belongs to. Stores implement it. */

/**
 * What became of an attempt that had claimed a task. `nothing`: it moved no money, and another one
 * of the same payment may still. `kept`: the payment has the task for good. `worthless`: the
 * payment can never move any money.
 */
export type ClaimEnd = 'nothing' | 'kept' | 'worthless';

/** The holder of a declined task: no payment gets it any more. */
export const DECLINED = 'declined';
/** Most declined tasks that are remembered, the newest: declining costs nothing. */
export const MAX_DECLINED = 1_000;

/**
 * Which payment has a waiting task (the x402 extension of A2A): the first that claims it, so that
 * two never run for one task. The task is not kept, its id contains what would be bought; only
 * payments with verified proofs are remembered here, so the size grows with payments and not with
 * messages. Every command may be repeated. Names are digests; claimants and attempts are texts of 1
 * to 256 letters, digits and `. _ : -`; spans are whole milliseconds.
 */
export interface TaskClaims {
  /** The claimant that has it, or undefined. @throws StoreError */
  holder(task: string): Promise<string | undefined>;
  /** True when this claimant has it now; it is remembered for `forMs`. @throws StoreError */
  claim(task: string, claimant: string, attempt: string, forMs: number): Promise<boolean>;
  /**
   * Ends one attempt. A task without an attempt, of a payment that did not keep it, is free again.
   * @throws StoreError
   */
  end(task: string, claimant: string, attempt: string, how: ClaimEnd): Promise<void>;
  /** False when a payment has it. @throws StoreError */
  decline(task: string, forMs: number): Promise<boolean>;
}
