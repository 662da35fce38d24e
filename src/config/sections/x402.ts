/** `payments.x402`: where the money goes, on which chain, and the rules of real money. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import { checksumAddress } from '../../crypto/address.ts';
import { eip155ChainId, KNOWN_NETWORKS } from '../../payments/pricing/networks.ts';
import { domainSeparator } from '../../payments/x402/evm/typed-data.ts';
import { readCdpKey } from '../../payments/x402/wire/cdp-token.ts';
import type {
  Confirmation,
  DeploymentMode,
  FacilitatorConfig,
  FacilitatorEndpoint,
  X402Config,
} from '../../payments/x402/wire/settings.ts';
import type { ProblemList } from '../../problems/problem.ts';
import type { EndpointDocument, FacilitatorDocument, X402Document } from '../document/document.ts';
import { isLoopbackUrl } from '../document/endpoints.ts';

const AT = 'payments.x402';
const X402 = schema.properties.payments.properties.x402.properties;
const FACILITATOR = X402.facilitator.properties;

type LocalDocument = Extract<FacilitatorDocument, { readonly mode: 'local' }>;

/** Accounts of anvil and hardhat ("test test … junk"), whose keys are published. */
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

/** What is needed from other sections. */
interface Surroundings {
  readonly redis: boolean;
  readonly sqlite: boolean;
  /** The relayer key came whole out of a mounted file, not from the document or the environment. */
  readonly keyFromFile: boolean;
}

/** Undefined after a problem that leaves nothing to derive from. */
export function deriveX402(document: X402Document, facts: Surroundings, problems: ProblemList): X402Config | undefined {
  const asset = checksumAddress(document.asset);
  const payTo = checksumAddress(document.payTo);
  if (payTo === asset) problems.add(`${AT}.payTo`, "must not be the token's own address: the money would be lost");
  const rpcUrl = document.rpcUrl || undefined;
  if (document.facilitator.mode === 'local' && rpcUrl === undefined)
    problems.add(`${AT}.rpcUrl`, 'is missing: a local facilitator settles through a node of the network');
  const mode = deploymentMode(document, rpcUrl, problems);
  const chainId = eip155ChainId(document.network);
  if (mode === undefined || chainId === undefined) return undefined;
  const config: X402Config = {
    network: document.network,
    chainId,
    asset,
    assetName: document.assetName,
    assetVersion: document.assetVersion,
    assetDecimals: document.assetDecimals,
    payTo,
    maxTimeoutSeconds: document.maxTimeoutSeconds ?? X402.maxTimeoutSeconds.default,
    rpcUrl,
    facilitator: facilitator(document.facilitator, facts, problems),
    confirm: confirmation(document, rpcUrl, problems),
    confirmations: confirmations(document, rpcUrl, problems),
    buyerTokenSecrets: document.buyerTokenSecrets ?? [],
    keepAnswerSeconds: document.keepAnswerSeconds ?? X402.keepAnswerSeconds.default,
    payToExclusive: document.payToExclusive ?? X402.payToExclusive.default,
    onStoreLoss: document.onStoreLoss ?? 'deliver',
    localSignatureCheck: document.localSignatureCheck ?? X402.localSignatureCheck.default,
    mode,
    domainSeparator: domainSeparator({
      name: document.assetName,
      version: document.assetVersion,
      chainId,
      verifyingContract: asset,
    }),
  };
  checkKnownAsset(config, problems);
  const allowed = document.allowMainnet ?? false;
  // A loopback node makes the mode `local`, and the money no less real.
  if (mode === 'local' && KNOWN_NETWORKS.get(document.network)?.mode === 'mainnet' && !allowed)
    problems.add(`${AT}.allowMainnet`, 'must be true: this is the chain id of a mainnet, also behind a loopback node');
  if (mode === 'mainnet') checkMainnet(config, allowed, facts, problems);
  return config;
}

/** Local when facilitator and RPC are on this machine, else by network (contract 2.1). */
function deploymentMode(
  { network, facilitator }: X402Document,
  rpcUrl: string | undefined,
  problems: ProblemList,
): DeploymentMode | undefined {
  if (eip155ChainId(network) === undefined) {
    problems.add(
      `${AT}.network`,
      'must be an EVM network, eip155:<chain id>: scheme exact with EIP-3009 is what is served',
    );
    return undefined;
  }
  const ours =
    facilitator.mode === 'local' ||
    [facilitator, ...(facilitator.fallbacks ?? [])].every(({ url }) => isLoopbackUrl(url));
  if (ours && rpcUrl !== undefined && isLoopbackUrl(rpcUrl)) return 'local';
  const known = KNOWN_NETWORKS.get(network);
  if (known !== undefined) return known.mode;
  const list = [...KNOWN_NETWORKS].map(([id, { title }]) => `${id} (${title})`).join(', ');
  problems.add(`${AT}.network`, `is unknown; known: ${list}; any chain when facilitator and rpcUrl are on loopback`);
  return undefined;
}

function facilitator(
  document: FacilitatorDocument,
  { sqlite }: Surroundings,
  problems: ProblemList,
): FacilitatorConfig {
  if (document.mode === 'local') return { ...document, relayers: relayers(document, sqlite, problems) };
  const fallbacks = (document.fallbacks ?? []).map((fallback, index) =>
    endpoint(fallback, `${AT}.facilitator.fallbacks[${index}]`, problems),
  );
  const config = { mode: 'remote', ...endpoint(document, `${AT}.facilitator`, problems), fallbacks } as const;
  const seen = new Set([new URL(config.url).href]);
  for (const [index, { url }] of fallbacks.entries()) {
    const { href } = new URL(url);
    if (seen.has(href)) problems.add(`${AT}.facilitator.fallbacks[${index}].url`, 'is there already; name another one');
    seen.add(href);
  }
  return config;
}

/** One process has a SQLite file, so there is none to lease further accounts. */
function relayers(
  { relayers: wanted = FACILITATOR.relayers.default }: LocalDocument,
  sqlite: boolean,
  problems: ProblemList,
): number {
  if (wanted > 1 && sqlite)
    problems.add(`${AT}.facilitator.relayers`, 'must be 1 with storage.sqlite; several processes need storage.redis');
  return wanted;
}

function endpoint(
  { url, auth = { type: 'none' } }: EndpointDocument,
  path: string,
  problems: ProblemList,
): FacilitatorEndpoint {
  const base = url.replace(/\/+$/, '');
  if (auth.type !== 'cdp') return { url: base, auth };
  // In a variable, and in the JSON file of a key, a PEM has \n for the ends of its lines.
  const keySecret = auth.keySecret.replaceAll('\\n', '\n').trim();
  const reading = readCdpKey(keySecret);
  if (!reading.ok) problems.add(`${path}.auth.keySecret`, reading.message);
  return { url: base, auth: { ...auth, keySecret } };
}

/** The chain decides wherever there is one to ask, unless configured otherwise. */
function confirmation(
  { confirm, facilitator: { mode } }: X402Document,
  rpcUrl: string | undefined,
  problems: ProblemList,
): Confirmation {
  if (confirm === 'receipt' && rpcUrl === undefined)
    problems.add(
      `${AT}.confirm`,
      'must be facilitator, or set rpcUrl: receipts are read through a node of the network',
    );
  if (confirm === 'facilitator' && mode === 'local')
    problems.add(`${AT}.confirm`, 'must be receipt: a local facilitator reads the outcome from the chain');
  return confirm ?? (rpcUrl === undefined ? 'facilitator' : 'receipt');
}

/** Only the chain knows a depth; a facilitator's claim has none. */
function confirmations(
  { confirmations: wanted = X402.confirmations.default, confirm }: X402Document,
  rpcUrl: string | undefined,
  problems: ProblemList,
): number {
  if (wanted > 1 && (rpcUrl === undefined || confirm === 'facilitator'))
    problems.add(
      `${AT}.confirmations`,
      'must be 1, or needs rpcUrl and confirm: receipt: the chain is asked for the blocks',
    );
  return wanted;
}

/** Refuses another EIP-712 domain for canonical USDC: no signature would be valid. */
function checkKnownAsset(config: X402Config, problems: ProblemList): void {
  const usdc = KNOWN_NETWORKS.get(config.network)?.usdc;
  if (usdc === undefined || usdc.address !== config.asset || config.mode === 'local') return;
  if (config.assetName !== usdc.name)
    problems.add(`${AT}.assetName`, `must be "${usdc.name}" for USDC on this network`);
  if (config.assetVersion !== usdc.version)
    problems.add(`${AT}.assetVersion`, `must be "${usdc.version}" for USDC on this network`);
  if (config.assetDecimals !== usdc.decimals)
    problems.add(`${AT}.assetDecimals`, `must be ${usdc.decimals} for USDC on this network`);
}

/** Rules of a mainnet. The USDC domain is checked for every known network by `checkKnownAsset`. */
function checkMainnet(config: X402Config, allowed: boolean, facts: Surroundings, problems: ProblemList): void {
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
