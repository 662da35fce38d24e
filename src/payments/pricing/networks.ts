/**
 * The networks that the gateway knows, by CAIP-2 id, with their canonical USDC. The EIP-712 name
 * differs between chains and a wrong one makes every payment fail silently, so it is part of the
 * table. Addresses in EIP-55 form.
 */

/** The chain id of anvil and hardhat. */
export const LOCAL_CHAIN_ID = 31_337;
/** The port of the local node unless `acg dev` is told otherwise. */
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
 * every other chain gateways refuse it (../x402/evm/account.ts).
 */
export const TEST_BUYER = {
  key: '0x7e577e577e577e577e577e577e577e577e577e577e577e577e577e577e577e57',
  address: '0x2B71e151d846a82EEb185e24947B4AE108F6B388',
} as const;

/** A token with EIP-3009, as its EIP-712 domain has it. */
interface KnownAsset {
  readonly address: string;
  readonly name: string;
  readonly version: string;
  readonly decimals: number;
}

interface KnownNetwork {
  readonly mode: 'local' | 'testnet' | 'mainnet';
  readonly title: string;
  readonly chainId: number;
  /** Undefined on development chains: every test deploys its own token. */
  readonly usdc: KnownAsset | undefined;
}

type Row = readonly [chainId: number, title: string, mode: 'testnet' | 'mainnet', usdc: string, eip712Name: string];

const ROWS: readonly Row[] = [
  [1, 'Ethereum', 'mainnet', '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', 'USD Coin'],
  [137, 'Polygon', 'mainnet', '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', 'USD Coin'],
  [143, 'Monad', 'mainnet', '0x754704Bc059F8C67012fEd69BC8A327a5aafb603', 'USDC'],
  [1329, 'Sei', 'mainnet', '0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392', 'USDC'],
  [8453, 'Base', 'mainnet', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 'USD Coin'],
  [42161, 'Arbitrum One', 'mainnet', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831', 'USD Coin'],
  [42220, 'Celo', 'mainnet', '0xcebA9300f2b948710d2653dD7B07f33A8B32118C', 'USDC'],
  [43114, 'Avalanche', 'mainnet', '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E', 'USD Coin'],
  [1328, 'Sei testnet', 'testnet', '0x4fCF1784B31630811181f670Aea7A7bEF803eaED', 'USDC'],
  [43113, 'Avalanche Fuji', 'testnet', '0x5425890298aed601595a70AB815c96711a31Bc65', 'USD Coin'],
  [80002, 'Polygon Amoy', 'testnet', '0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582', 'USDC'],
  [84532, 'Base Sepolia', 'testnet', '0x036CbD53842c5426634e7929541eC2318f3dCF7e', 'USDC'],
  [421614, 'Arbitrum Sepolia', 'testnet', '0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d', 'USD Coin'],
  [11155111, 'Ethereum Sepolia', 'testnet', '0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238', 'USDC'],
];

/** Chain ids that development chains use by default (anvil and hardhat, ganache and geth --dev). */
const DEVELOPMENT_CHAINS: readonly number[] = [LOCAL_CHAIN_ID, 1337];

/** Circle's euro by chain id of a mainnet. Its EIP-712 name differs, so a configuration has it. */
export const EURC: ReadonlyMap<number, string> = new Map([
  [1, '0x1aBaEA1f7C830bD89Acc67eC4af516284b1bC33c'],
  [8453, '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42'],
  [43114, '0xC891EB4cbdEFf6e073e859e987815Ed1505c2ACD'],
]);

/** Known networks by CAIP-2 id. */
export const KNOWN_NETWORKS: ReadonlyMap<string, KnownNetwork> = new Map<string, KnownNetwork>([
  ...DEVELOPMENT_CHAINS.map((chainId): [string, KnownNetwork] => [
    `eip155:${chainId}`,
    { mode: 'local', title: 'development chain', chainId, usdc: undefined },
  ]),
  ...ROWS.map(([chainId, title, mode, address, name]): [string, KnownNetwork] => [
    `eip155:${chainId}`,
    { mode, title, chainId, usdc: { address, name, version: '2', decimals: 6 } },
  ]),
]);

/** CAIP-2 ids by the names that a configuration may have for them, such as `base-sepolia`. */
export const NETWORK_NAMES: ReadonlyMap<string, string> = new Map([
  ...ROWS.map(([chainId, title]) => [title.toLowerCase().replaceAll(' ', '-'), `eip155:${chainId}`] as const),
  ['local', `eip155:${LOCAL_CHAIN_ID}`],
]);
