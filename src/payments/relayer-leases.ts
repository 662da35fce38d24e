/** The port of the leases on a merchant's relayer accounts. A store of several processes has it. */

/**
 * Which process sends from which account: two that send from one collide in its transaction
 * numbers. A lease only spares those collisions. What becomes of a payment is decided by the chain
 * in any case, so a process whose lease has ended does no harm.
 */
export interface RelayerLeases {
  /**
   * Leases one account, lower case 0x-hex, for `forMs` milliseconds: the one that the owner has,
   * else the first that no other owner has. Undefined when there is none. @throws StoreError
   */
  lease(owner: string, accounts: readonly string[], forMs: number): Promise<string | undefined>;
  /** Gives back what the owner has of these. @throws StoreError */
  release(owner: string, accounts: readonly string[]): Promise<void>;
}
