/** The buyer of the local world, whose key anyone may know. */

/**
 * A TEST key, in the source on purpose: on the local chain its account holds the token of the world
 * and gas, on every other chain gateways refuse it (src/payments/x402/evm/published-keys.ts).
 */
export const TEST_BUYER = {
  key: '0x7e577e577e577e577e577e577e577e577e577e577e577e577e577e577e577e57',
  address: '0x2B71e151d846a82EEb185e24947B4AE108F6B388',
} as const;
