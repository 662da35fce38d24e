/** `payments.x402`: where the money goes, on which chain, and the rules of real money. */

import { checksumAddress } from '../../crypto/hash.ts';
import { EURC, KNOWN_NETWORKS } from '../../payments/pricing/networks.ts';
import { isPublishedAccount, isPublishedKey } from '../../payments/x402/evm/account.ts';
import { domainSeparator } from '../../payments/x402/evm/eip3009.ts';
import { readCdpKey } from '../../payments/x402/wire/cdp-token.ts';
import { eip155ChainId } from '../../payments/x402/wire/proof.ts';
import type {
  Confirmation,
  DeploymentMode,
  FacilitatorConfig,
  FacilitatorEndpoint,
  X402Config,
} from '../../payments/x402/wire/settings.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { ConfigDocument, X402Document } from '../document/document.ts';
import { isLoopbackUrl } from '../document/endpoints.ts';

const X402 = 'payments.x402';

type FacilitatorDocument = X402Document['facilitator'];
type RemoteDocument = Extract<FacilitatorDocument, { mode: 'remote' }>;

const PUBLISHED_KEYS_FOR = 'for development on eip155:31337';

/** An entry of `payments.x402`, and its path. */
export interface X402Entry {
  readonly at: string;
  readonly entry: X402Document;
}

/** `written`: one entry, a list of them, or none. */
export function entriesOf(written: ConfigDocument['payments']['x402']): readonly X402Entry[] {
  if (written === undefined) return [];
  return 'length' in written
    ? written.map((entry, index) => ({ at: memberPath(X402, index), entry }))
    : [{ at: X402, entry: written }];
}

/** The derived entries in their order; undefined after a problem of one. */
export function deriveEntries(
  entries: readonly X402Entry[],
  engine: Surroundings['engine'],
  fromFile: ReadonlySet<string>,
  problems: ProblemList,
): readonly X402Config[] | undefined {
  const configs = entries.map(({ at, entry }) => {
    if (!problems.readable(at)) return undefined;
    const keyFromFile = fromFile.has(`${at}.facilitator.privateKey`);
    return deriveX402(entry, at, { engine, keyFromFile }, problems);
  });
  checkTogether(entries, configs, problems);
  const [first] = configs;
  const found = configs.filter((config) => config !== undefined);
  if (first === undefined || found.length < configs.length || !problems.sound(X402)) return undefined;
  // The buyer's token is one for all offers.
  const { buyerTokenSecrets, keepAnswerSeconds } = first;
  return found.map((config) => ({ ...config, buyerTokenSecrets, keepAnswerSeconds }));
}

/** Facts of other sections; undefined: that section was refused. */
interface Surroundings {
  readonly engine: 'redis' | 'sqlite' | undefined;
  /** The relayer key came whole out of a mounted file, not from the document or the environment. */
  readonly keyFromFile: boolean;
}

/**
 * Derives an entry of `payments.x402`, which is `at` a path; undefined after a problem. Each rule
 * applies where its own input was accepted, whatever else was refused.
 */
function deriveX402(
  document: X402Document,
  at: string,
  facts: Surroundings,
  problems: ProblemList,
): X402Config | undefined {
  const accepted = (...keys: readonly string[]): boolean => problems.sound(...keys.map((key) => `${at}.${key}`));
  const refuse = (key: string, message: string): void => problems.add(`${at}.${key}`, message);
  const { facilitator } = document;
  if (accepted('asset', 'payTo') && checksumAddress(document.payTo) === checksumAddress(document.asset))
    refuse('payTo', "must not be the token's own address: the money would be lost");
  const rpcUrls = accepted(...NODES) ? nodesOf(document) : [];
  const [rpcUrl] = rpcUrls;
  if (accepted(...NODES, 'facilitator.mode') && facilitator.mode === 'local' && rpcUrl === undefined)
    refuse('rpcUrl', 'is missing: a local facilitator settles through a node of the network');
  const isPlaced = accepted('network', ...NODES, 'facilitator.mode', 'facilitator.url', 'facilitator.fallbacks');
  const mode = isPlaced ? deploymentMode(document, rpcUrls, refuse) : undefined;
  if (mode !== undefined) checkMoney(document, mode, facts, accepted, refuse);
  if (mode === 'mainnet' && facts.engine === 'sqlite') problems.add('storage', 'must be redis on a mainnet');
  if (accepted('confirm', ...NODES, 'facilitator.mode')) checkConfirmation(document, rpcUrl, refuse);
  if (accepted('confirm', 'confirmations', ...NODES)) checkConfirmations(document, rpcUrl, refuse);
  const settles = accepted('facilitator') ? deriveFacilitator(facilitator, `${at}.facilitator`, problems) : undefined;
  const chainId = accepted('network') ? eip155ChainId(document.network) : undefined;
  if (chainId !== undefined) checkPublishedKeys(document, settles, chainId, accepted, refuse);
  if (!problems.sound(at) || mode === undefined || chainId === undefined || settles === undefined) return undefined;
  const { assetName: name, assetVersion: version, payTo, buyerTokenSecrets = [] } = document;
  const asset = checksumAddress(document.asset);
  return {
    ...document,
    chainId,
    asset,
    payTo: checksumAddress(payTo),
    currencies: currenciesOf(document),
    buyerTokenSecrets,
    domainSeparator: domainSeparator({ name, version, chainId, verifyingContract: asset }),
    rpcUrls,
    confirm: confirmationOf(document, rpcUrl),
    facilitator: settles,
    mode,
  };
}

/** Names of the token in prices: the declared currency, and its EIP-712 name. */
export function currenciesOf({ currency, assetName }: X402Document): readonly string[] {
  return currency === undefined ? [assetName] : [currency, assetName];
}

/** Refuses entries that cannot stand beside each other. */
function checkTogether(
  entries: readonly X402Entry[],
  configs: readonly (X402Config | undefined)[],
  problems: ProblemList,
) {
  const derived = entries.flatMap(({ at }, index) => {
    const config = configs[index];
    return config === undefined ? [] : [{ at, config }];
  });
  for (const [index, { at, config }] of derived.entries())
    for (const { at: other, config: before } of derived.slice(0, index)) {
      if ((config.mode === 'mainnet') !== (before.mode === 'mainnet'))
        problems.add(
          `${at}.network`,
          `must not stand beside that of ${other}: one of them has real money, and one has not`,
        );
      if (config.network !== before.network) continue;
      if (config.asset === before.asset)
        problems.add(`${at}.asset`, `is the token of ${other} already; a token of a network has one entry`);
      const [key, itsKey] = [config, before].map(({ facilitator }) =>
        facilitator.mode === 'local' ? facilitator.privateKey.toLowerCase() : undefined,
      );
      if (key !== undefined && key === itsKey)
        problems.add(
          `${at}.facilitator.privateKey`,
          `must be another key than that of ${other}: two senders with one key take the same nonces of the network`,
        );
    }
}

/** The settings that name nodes. */
const NODES = ['rpcUrl', 'rpcUrls'] as const;

/** The nodes, each once; an empty `rpcUrl`, as of an unset variable, is none. */
function nodesOf({ rpcUrl, rpcUrls = [] }: X402Document): readonly string[] {
  return [...new Set([...(rpcUrl ? [rpcUrl] : []), ...rpcUrls])];
}

type Accepted = (...keys: readonly string[]) => boolean;
type Refuse = (key: string, message: string) => void;

/** Local when facilitator and RPC are on this machine, else by network (contract 2.1). */
function deploymentMode(
  { network, facilitator }: X402Document,
  rpcUrls: readonly string[],
  refuse: Refuse,
): DeploymentMode | undefined {
  if (eip155ChainId(network) === undefined) {
    refuse('network', 'must be an EVM network, eip155:<chain id>: scheme exact with EIP-3009 is what is served');
    return undefined;
  }
  const ours =
    facilitator.mode === 'local' ||
    [facilitator, ...(facilitator.fallbacks ?? [])].every(({ url }) => isLoopbackUrl(url));
  if (ours && rpcUrls.length > 0 && rpcUrls.every(isLoopbackUrl)) return 'local';
  const known = KNOWN_NETWORKS.get(network);
  if (known !== undefined) return known.mode;
  const list = [...KNOWN_NETWORKS].map(([id, { title }]) => `${id} (${title})`).join(', ');
  refuse('network', `is unknown; known: ${list}; any chain when facilitator and rpcUrl are on loopback`);
  return undefined;
}

function deriveFacilitator(document: FacilitatorDocument, at: string, problems: ProblemList): FacilitatorConfig {
  if (document.mode === 'local') return document;
  const fallbacks = (document.fallbacks ?? []).map((fallback, index) =>
    endpoint(fallback, `${at}.fallbacks[${index}]`, problems),
  );
  const config = { mode: 'remote', ...endpoint(document, at, problems), fallbacks } as const;
  const seen = new Set([new URL(config.url).href]);
  for (const [index, { url }] of fallbacks.entries()) {
    const { href } = new URL(url);
    if (seen.has(href)) problems.add(`${at}.fallbacks[${index}].url`, 'is there already; name another one');
    seen.add(href);
  }
  return config;
}

function endpoint(
  { url, auth = { type: 'none' } }: Pick<RemoteDocument, 'url' | 'auth'>,
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
function confirmationOf({ confirm }: X402Document, rpcUrl: string | undefined): Confirmation {
  return confirm ?? (rpcUrl === undefined ? 'facilitator' : 'receipt');
}

function checkConfirmation(
  { confirm, facilitator: { mode } }: X402Document,
  rpcUrl: string | undefined,
  refuse: Refuse,
) {
  if (confirm === 'receipt' && rpcUrl === undefined)
    refuse('confirm', 'must be facilitator, or set rpcUrl: receipts are read through a node of the network');
  if (confirm === 'facilitator' && mode === 'local')
    refuse('confirm', 'must be receipt: a local facilitator reads the outcome from the chain');
}

/** Only the chain knows a depth; a facilitator's claim has none. */
function checkConfirmations({ confirmations, confirm }: X402Document, rpcUrl: string | undefined, refuse: Refuse) {
  if (confirmations > 1 && (rpcUrl === undefined || confirm === 'facilitator'))
    refuse('confirmations', 'must be 1, or needs rpcUrl and confirm: receipt: the chain is asked for the blocks');
}

/** The rules of known networks and of real money. */
function checkMoney(
  document: X402Document,
  mode: DeploymentMode,
  facts: Surroundings,
  accepted: Accepted,
  refuse: Refuse,
): void {
  checkKnownAsset(document, mode, accepted, refuse);
  const isMainnet = KNOWN_NETWORKS.get(document.network)?.mode === 'mainnet';
  // A loopback node makes the mode `local`, and the money no less real.
  if (accepted('allowMainnet') && mode === 'local' && isMainnet && !document.allowMainnet)
    refuse('allowMainnet', 'must be true: this is the chain id of a mainnet, also behind a loopback node');
  if (mode === 'mainnet') checkMainnet(document, facts, accepted, refuse);
}

/** Refuses another EIP-712 domain for canonical USDC: no signature would be valid. */
function checkKnownAsset(document: X402Document, mode: DeploymentMode, accepted: Accepted, refuse: Refuse): void {
  const usdc = KNOWN_NETWORKS.get(document.network)?.usdc;
  if (usdc === undefined || mode === 'local' || !accepted('asset')) return;
  if (usdc.address !== checksumAddress(document.asset)) return;
  if (accepted('assetName') && document.assetName !== usdc.name)
    refuse('assetName', `must be "${usdc.name}" for USDC on this network`);
  if (accepted('assetVersion') && document.assetVersion !== usdc.version)
    refuse('assetVersion', `must be "${usdc.version}" for USDC on this network`);
  if (accepted('assetDecimals') && document.assetDecimals !== usdc.decimals)
    refuse('assetDecimals', `must be ${usdc.decimals} for USDC on this network`);
}

/** Refuses accounts whose keys are in a source or a manual: others empty them. */
function checkPublishedKeys(
  { payTo }: X402Document,
  settles: X402Config['facilitator'] | undefined,
  chainId: number,
  accepted: Accepted,
  refuse: Refuse,
): void {
  if (accepted('payTo') && isPublishedAccount(checksumAddress(payTo), chainId))
    refuse('payTo', `must be an account of yours: the key of this one is public, ${PUBLISHED_KEYS_FOR}`);
  if (settles?.mode === 'local' && isPublishedKey(settles.privateKey, chainId))
    refuse('facilitator.privateKey', `must be a key of yours: this one is public, ${PUBLISHED_KEYS_FOR}`);
}

/** Rules of a mainnet. The USDC domain is checked for every known network by `checkKnownAsset`. */
function checkMainnet(document: X402Document, facts: Surroundings, accepted: Accepted, refuse: Refuse): void {
  const { facilitator, network } = document;
  const [rpcUrl] = nodesOf(document);
  if (accepted('allowMainnet') && !document.allowMainnet)
    refuse('allowMainnet', 'must be true to take real money on this network');
  if (facilitator.mode === 'remote') {
    const named = (facilitator.fallbacks ?? []).map(({ url }, index) => [`fallbacks[${index}].url`, url] as const);
    for (const [key, url] of [['url', facilitator.url] as const, ...named])
      if (!url.toLowerCase().startsWith('https://')) refuse(`facilitator.${key}`, 'must be https on a mainnet');
  }
  if (facilitator.mode === 'local' && accepted('facilitator.privateKey') && !facts.keyFromFile)
    refuse('facilitator.privateKey', `must come from a mounted file on a mainnet: "\${file:/path}"`);
  if (rpcUrl && document.confirm === 'facilitator')
    refuse('confirm', 'must be receipt on a mainnet: every payment is checked on the chain');
  if (!rpcUrl) refuse('rpcUrl', 'is missing: on a mainnet every payment is checked on the chain');
  const usdc = KNOWN_NETWORKS.get(network)?.usdc;
  const eurc = EURC.get(eip155ChainId(network) ?? 0);
  if (usdc !== undefined && accepted('asset') && ![usdc.address, eurc].includes(checksumAddress(document.asset)))
    refuse(
      'asset',
      `must be the canonical USDC of this network, ${usdc.address}${eurc === undefined ? '' : `, or its EURC, ${eurc}`}`,
    );
}
