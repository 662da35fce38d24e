/** What a final status of the merchant means for the caller. */
type StatusOutcome =
  /** The answer is what was bought or asked for. */
  | { readonly kind: 'deliver' }
  /** Never followed and never relayed: its Location can name an internal host. */
  | { readonly kind: 'redirect' }
  /** The merchant did not deliver; the caller learns the status, nothing else. */
  | { readonly kind: 'fail' };

/**
 * Classifies a status (CONTRACT 1.2). `relayStatuses`: 4xx statuses the resource delivers as they are; pass an empty list for a
 * paid call. 402 is never among them: only the gateway may ask for money.
 */
export function classify(status: number, relayStatuses: readonly number[]): StatusOutcome {
  if (status >= 200 && status <= 299) return { kind: 'deliver' };
  if (status >= 300 && status <= 399) return { kind: 'redirect' };
  const relayed = status >= 400 && status <= 499 && status !== 402 && relayStatuses.includes(status);
  return { kind: relayed ? 'deliver' : 'fail' };
}
