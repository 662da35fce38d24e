/**
 * What became of an attempt that had claimed a task. `nothing`: it moved no money, and another one
 * of the same payment may still. `kept`: the payment has the task for good. `worthless`: the
 * payment can never move any money.
 */
export type ClaimEnd = 'nothing' | 'kept' | 'worthless';

/** Who declined holds a task too: nobody pays for it any more. */
export const DECLINED = 'declined';
/**
 * Most declined tasks that are remembered: who declines has paid for nothing. The oldest is
 * forgotten for a new one.
 */
export const MAX_DECLINED = 1_000;

/**
 * Which payment has a task that waits (the x402 extension of A2A): the first one that claims it, so
 * that two can never run for one task. A task itself is not kept, its id says what was ordered;
 * only payments whose proofs were verified are remembered here, so what is remembered grows with
 * sales and not with messages. Every command may be repeated. Names are digests, and claimants and
 * attempts texts of 1 to 256 letters, digits and `. _ : -`; spans are whole milliseconds.
 */
export interface TaskClaims {
  /** Who has it, or undefined. @throws StoreError */
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
