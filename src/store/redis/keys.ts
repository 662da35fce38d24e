/** The keys of one merchant. */

/**
 * The beginning of all of them. It has one hash tag, so one Cluster slot: a commit changes state,
 * receipt and events together.
 * @throws Error for a merchant id that breaks the hash tag
 */
export function keyPrefix(merchantId: string): string {
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(merchantId)) throw new Error('a merchant id cannot be part of a Redis key');
  return `{acg:${merchantId}}:`;
}
