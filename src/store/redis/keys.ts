/**
 * The keys of one merchant. All have one hash tag, so one Cluster slot: a script can change state,
 * receipt and events together.
 */

export interface RedisKeys {
  /** Hash: one payment record. */
  readonly payment: (payId: string) => string;
  /** String: the payId of the payment that showed a token first, until the token is too old. */
  readonly token: (tokenId: string) => string;
  /** String: the answer kept with a payment, with an expiry of its own. */
  readonly kept: (payId: string) => string;
  /** Hash: refused proof to `until reason`, milliseconds. */
  readonly refusals: string;
  /** Sorted set: refused proofs by the time at which they are forgotten, milliseconds. */
  readonly refusalEnds: string;
  /** String: a value that all processes share. */
  readonly secret: (name: string) => string;
  /** Sorted set: payId by the time at which its record is due for the reconciler, milliseconds. */
  readonly open: string;
  /** Sorted set: payId of refused payments whose backend had answered, by time, milliseconds. */
  readonly unpaid: string;
  /** Stream: events as JSON in field `e`. */
  readonly events: string;
  /** Hash: receipt id to JSON. */
  readonly receipts: string;
  /** Sorted set, all scores 0, so ids are in order of time: the list `done` (receipt.ts). */
  readonly receiptsDone: string;
  /** The same for the list `owed`. */
  readonly receiptsOwed: string;
  /** The same for the list `uncertain`. */
  readonly receiptsUncertain: string;
  /**
   * Sorted set, all scores 0: 22 characters of a digest over a request, call or payment, and the id
   * of a receipt that belongs to it.
   */
  readonly receiptNames: string;
  /** Hash: the oldest and the newest receipt id that were ever trimmed, as `from` and `to`. */
  readonly receiptsTrimmed: string;
  /** Sorted set: used closed mandates and checkouts by their end, milliseconds. */
  readonly mandatesOnce: string;
  /** Hash: open mandate to its state as JSON, numbers in it as text. */
  readonly mandatesOpen: string;
  /** Sorted set: open mandates by their end, milliseconds. */
  readonly mandatesOpenEnds: string;
  /** Hash: since when the register remembers, as `born` and `openFrom`, milliseconds. */
  readonly mandatesEpoch: string;
  /** Hash: claims of calls that pay nothing, as JSON by the name of the call. */
  readonly mandatesHeld: string;
  /** Sorted set: names of held claims by their end, milliseconds. */
  readonly mandatesHeldEnds: string;
  /** Hash: the record of one key of a checkout operation (acp 12.3), with an expiry of its own. */
  readonly checkout: (name: string) => string;
  /** Hash: the attempt that holds one checkout session, with an expiry of its own. */
  readonly checkoutLock: (name: string) => string;
  /** Hash: `owner` of one checkout session, and `ends`, milliseconds, with an expiry. */
  readonly checkoutOwner: (session: string) => string;
  /** Sorted set: calls under way of one holder of unpaid work, by the end of their place. */
  readonly working: (holder: string) => string;
  /** Sorted set: the same of work that ended unpaid, milliseconds. */
  readonly workedUnpaid: (holder: string) => string;
  /** String: the holders that count an unpaid call, as JSON. */
  readonly workHolders: (name: string) => string;
  /** String: number of the last batch that one feed queue appended. */
  readonly batch: (queue: string) => string;
  /** String: what the readiness check writes and reads back. */
  readonly ready: string;
  /** String: what a check beside the gateways writes, reads back and deletes. */
  readonly trial: (name: string) => string;
}

/** The register of mandates, as scripts take it: four keys in this order. */
export function registerKeys(keys: RedisKeys): readonly string[] {
  return [keys.mandatesOnce, keys.mandatesOpen, keys.mandatesOpenEnds, keys.mandatesEpoch];
}

/** The book of receipts, as scripts that write to it take it: six keys in this order. */
export function bookKeys(keys: RedisKeys): readonly string[] {
  const lists = [keys.receiptsDone, keys.receiptsOwed, keys.receiptsUncertain];
  return [keys.receipts, ...lists, keys.receiptNames, keys.receiptsTrimmed];
}

/** @throws Error for a merchant id that breaks the hash tag */
export function redisKeys(merchantId: string): RedisKeys {
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(merchantId)) throw new Error('a merchant id cannot be part of a Redis key');
  const tag = `{acg:${merchantId}}`;
  return {
    payment: (payId) => `${tag}:pay:${payId}`,
    token: (tokenId) => `${tag}:tok:${tokenId}`,
    kept: (payId) => `${tag}:res:${payId}`,
    refusals: `${tag}:refused`,
    refusalEnds: `${tag}:refused:ends`,
    secret: (name) => `${tag}:secret:${name}`,
    open: `${tag}:open`,
    unpaid: `${tag}:unpaid`,
    events: `${tag}:ev`,
    receipts: `${tag}:rcpt`,
    receiptsDone: `${tag}:rcpt:done`,
    receiptsOwed: `${tag}:rcpt:owed`,
    receiptsUncertain: `${tag}:rcpt:uncertain`,
    receiptNames: `${tag}:rcpt:names`,
    receiptsTrimmed: `${tag}:rcpt:trimmed`,
    mandatesOnce: `${tag}:ap2:once`,
    mandatesOpen: `${tag}:ap2:open`,
    mandatesOpenEnds: `${tag}:ap2:open:ends`,
    mandatesEpoch: `${tag}:ap2:epoch`,
    mandatesHeld: `${tag}:ap2:held`,
    mandatesHeldEnds: `${tag}:ap2:held:ends`,
    checkout: (name) => `${tag}:acp:idem:1:${name}`,
    checkoutLock: (name) => `${tag}:acp:lock:${name}`,
    checkoutOwner: (session) => `${tag}:acp:own:${session}`,
    working: (holder) => `${tag}:work:run:${holder}`,
    workedUnpaid: (holder) => `${tag}:work:unpaid:${holder}`,
    workHolders: (name) => `${tag}:work:of:${name}`,
    batch: (queue) => `${tag}:batch:${queue}`,
    ready: `${tag}:ready`,
    trial: (name) => `${tag}:trial:${name}`,
  };
}
