/** `pricing` of a resource: its price in base units of the configured asset. */

import { AmountError, type Pricing, parseAmount } from '../../payments/pricing/amount.ts';
import type { ProblemList } from '../../problems/problem.ts';
import type { ResourceDocument, X402Document } from '../document/document.ts';

/** `absent`: the gateway takes no money; `unsound`: the section was refused already. */
export type PriceAsset =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unsound' }
  | { readonly kind: 'known'; readonly decimals: number; readonly currencies: readonly string[] };

/** Prices name the token by its EIP-712 name or by the declared currency ("USD Coin" or "USDC"). */
export function priceAsset(x402: X402Document, problems: ProblemList): PriceAsset {
  const read = ['assetDecimals', 'assetName', 'currency'].map((key) => `payments.x402.${key}`);
  if (!problems.sound(...read)) return { kind: 'unsound' };
  const currencies = x402.currency === undefined ? [x402.assetName] : [x402.currency, x402.assetName];
  return { kind: 'known', decimals: x402.assetDecimals, currencies };
}

/** Refuses a price that the asset cannot hold exactly: it would be charged wrong. */
export function derivePricing(
  pricing: ResourceDocument['pricing'],
  asset: PriceAsset,
  path: string,
  problems: ProblemList,
): Pricing | undefined {
  if (pricing.type === 'free') return { type: 'free' };
  const { amount, currency, settle } = pricing;
  if (asset.kind === 'absent') problems.add(`${path}.pricing`, 'needs payments.x402, else it cannot be paid');
  if (asset.kind !== 'known') return undefined;
  if (!asset.currencies.includes(currency)) problems.add(`${path}.pricing.currency`, currencyProblem(asset.currencies));
  try {
    const units = parseAmount(amount, asset.decimals);
    if (units > 0n) return { type: 'fixed', amount, currency, units, ...(settle === 'after' ? { settle } : {}) };
    problems.add(`${path}.pricing.amount`, 'must be more than zero; use type: free to give it away');
  } catch (error) {
    if (!(error instanceof AmountError)) throw error;
    const bound = error.reason === 'too_precise' ? ` (${asset.decimals})` : '';
    problems.add(`${path}.pricing.amount`, `must be a price that can be charged exactly: ${error.message}${bound}`);
  }
  return undefined;
}

/** Names what is accepted, and the setting for what prices call the token. */
function currencyProblem(currencies: readonly string[]): string {
  const names = `must be ${currencies.map((name) => `"${name}"`).join(' or ')}`;
  return currencies.length > 1 ? names : `${names}, or set payments.x402.currency to what prices call this token`;
}
