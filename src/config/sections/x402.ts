/** `payments.x402`: where the money goes, on which chain, and the rules of real money. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import { checksumAddress } from '../../crypto/address.ts';
import { eip155ChainId, KNOWN_NETWORKS } from '../../payments/pricing/networks.ts';
import { isPublishedAccount, isPublishedKey } from '../../payments/x402/evm/published-keys.ts';
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

const PUBLISHED_KEYS_FOR = 'for development on eip155:31337';

type LocalDocument = Extract<FacilitatorDocument, { readonly mode: 'local' }>;

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
  checkPublishedKeys(config, problems);
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

/** Refuses accounts whose keys are in a source or a manual: others empty them. */
function checkPublishedKeys({ chainId, payTo, facilitator }: X402Config, problems: ProblemList): void {
  if (isPublishedAccount(payTo, chainId))
    problems.add(`${AT}.payTo`, `must be an account of yours: the key of this one is public, ${PUBLISHED_KEYS_FOR}`);
  if (facilitator.mode === 'local' && isPublishedKey(facilitator.privateKey, chainId))
    problems.add(`${AT}.facilitator.privateKey`, `must be a key of yours: this one is public, ${PUBLISHED_KEYS_FOR}`);
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
  if (!facts.redis) problems.add('storage', 'must be redis on a mainnet');
}
