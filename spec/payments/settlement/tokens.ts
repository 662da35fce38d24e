import {
  type BuyerTokens,
  createBuyerTokens,
  type OfferedTerms,
  type TokenKey,
  type TokenScope,
  tokenKey,
} from '../../../src/payments/pricing/buyer-token.ts';

export const SCOPE: TokenScope = {
  merchantId: 'shop',
  chainId: 1,
  asset: `0x${'a'.repeat(40)}`,
  payTo: `0x${'b'.repeat(40)}`,
};
export const MAX_TIMEOUT_SECONDS = 120;

/** What the 402 of a token offers, where it does not matter. */
export const TERMS: OfferedTerms = {
  resourceUrl: 'https://shop.example/api/resources/report/invoke',
  units: '10000',
  maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
};

export function keyOf(secret: string, scope: TokenScope = SCOPE): TokenKey {
  return tokenKey(Buffer.from(secret), scope);
}

/** Tokens under one key, or under several of which the first issues. */
export function tokensUnder(secrets: readonly [string, ...string[]] = ['one'], now?: () => number): BuyerTokens {
  const [first, ...others] = secrets;
  const keys: readonly [TokenKey, ...TokenKey[]] = [keyOf(first), ...others.map((secret) => keyOf(secret))];
  return createBuyerTokens(() => keys, now);
}
