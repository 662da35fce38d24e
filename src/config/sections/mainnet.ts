import { KNOWN_NETWORKS } from '../../payments/pricing/networks.ts';
import type { X402Config } from '../../payments/x402/wire/settings.ts';
import type { ProblemList } from '../../problems/problem.ts';

/** What the rules of real money need to know about the rest of the configuration. */
export interface MainnetFacts {
  readonly redis: boolean;
  /** The relayer key came whole out of a mounted file: not out of the document, not out of the environment. */
  readonly keyFromFile: boolean;
}

/** Accounts whose keys are printed in every tutorial (anvil, hardhat: "test test … junk"): money sent there is gone in seconds. */
export const DEVELOPMENT_ACCOUNTS: ReadonlySet<string> = new Set([
  '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  '0x90F79bf6EB2c4f870365E785982E1f101E93b906',
  '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65',
  '0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc',
  '0x976EA74026E726554dB657fA54763abd0C3a0aa9',
  '0x14dC79964da2C08b23698B3D3cc7Ca32193d9955',
  '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f',
  '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720',
]);

/** What has to be so before real money is taken. The USDC domain is checked for every known network elsewhere. */
export function checkMainnet(config: X402Config, allowed: boolean, facts: MainnetFacts, problems: ProblemList): void {
  const refuse = (key: string, message: string): void => problems.add(`payments.x402.${key}`, message);
  if (!allowed) refuse('allowMainnet', 'must be true to take real money on this network');
  const { facilitator } = config;
  if (facilitator.mode === 'remote') {
    const named = facilitator.fallbacks.map(({ url }, index) => [`fallbacks[${index}].url`, url] as const);
    for (const [key, url] of [['url', facilitator.url] as const, ...named])
      if (!url.toLowerCase().startsWith('https://')) refuse(`facilitator.${key}`, 'must be https on a mainnet');
  }
  if (facilitator.mode === 'local' && !facts.keyFromFile)
    refuse('facilitator.privateKey', `must come from a mounted file on a mainnet: "\${file:/path}"`);
  if (config.rpcUrl !== undefined && config.confirm === 'facilitator')
    refuse('confirm', 'must be receipt on a mainnet: every payment is checked on the chain');
  if (config.rpcUrl === undefined) refuse('rpcUrl', 'is missing: on a mainnet every payment is checked on the chain');
  const usdc = KNOWN_NETWORKS.get(config.network)?.usdc;
  if (usdc !== undefined && config.asset !== usdc.address)
    refuse('asset', `must be the canonical USDC of this network, ${usdc.address}`);
  if (DEVELOPMENT_ACCOUNTS.has(config.payTo))
    refuse('payTo', 'must not be a well-known development account: its key is public');
  if (!facts.redis) problems.add('storage', 'must be redis on a mainnet');
}
