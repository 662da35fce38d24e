/** The chain of `acg dev`: the same token and the same TEST buyer in every local world. */

/** That of anvil and hardhat. */
export const LOCAL_CHAIN_ID = 31_337;
/** Where its node listens unless `acg dev` is told otherwise. */
export const LOCAL_RPC_PORT = 8_545;

/** An EIP-3009 token, with its EIP-712 domain. Its address follows from its deployer. */
export const LOCAL_TOKEN = {
  address: '0x87c67AC88760af497D7D4cDf96Bb87AcD68EABD1',
  name: 'Test USD',
  version: '2',
  decimals: 6,
} as const;

/**
 * A TEST key, in the source on purpose: on the local chain its account holds the token and gas, on
 * every other chain gateways refuse it (../x402/evm/published-keys.ts).
 */
export const TEST_BUYER = {
  key: '0x7e577e577e577e577e577e577e577e577e577e577e577e577e577e577e577e57',
  address: '0x2B71e151d846a82EEb185e24947B4AE108F6B388',
} as const;
