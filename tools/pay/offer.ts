/** The offer of a challenge that can be paid, in words that a person can judge. */

import type { PaymentRequired, PaymentRequirements } from '@x402/core/types';
import { UsageError } from '../../src/cli/program.ts';
import { KNOWN_NETWORKS, LOCAL_CHAIN_ID, LOCAL_TOKEN, NETWORK_NAMES } from '../../src/payments/pricing/networks.ts';
import { eip155ChainId } from '../../src/payments/x402/wire/proof.ts';
import { LOCAL_CURRENCY } from '../local-world/token.ts';

/** An offer of scheme exact by EIP-3009, on a chain that keys of Ethereum sign for. */
export interface Offer {
  readonly requirements: PaymentRequirements;
  readonly chainId: number;
  /** What the seller calls the token. Believed of the local chain's own, which is worth nothing. */
  readonly currency?: string | undefined;
}

/** A token whose units are known, not by the word of a seller. */
export interface KnownToken {
  readonly address: string;
  readonly symbol: string;
  readonly decimals: number;
}

const text = (grammar: RegExp) => (value: unknown) => typeof value === 'string' && grammar.test(value);
const isNetwork = text(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/);
const isAddress = text(/^0x[0-9a-f]{40}$/i);
/** Longest time that an offer may be paid (contract 4.1): the signature is valid as long. */
const LONGEST_TIMEOUT_SECONDS = 3_600;
const isTimeout = (value: unknown) =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= LONGEST_TIMEOUT_SECONDS;
/** Members of an offer, which is the JSON of a stranger, and the words for a right one. */
const MEMBERS = [
  ['network', isNetwork, 'a CAIP-2 text such as eip155:8453'],
  ['amount', text(/^\d{1,78}$/), 'a text of 1 to 78 digits'],
  ['payTo', isAddress, 'a text of 0x and 40 hexadecimal digits'],
  ['asset', isAddress, 'a text of 0x and 40 hexadecimal digits'],
  ['maxTimeoutSeconds', isTimeout, `a whole number from 1 to ${LONGEST_TIMEOUT_SECONDS}`],
] as const;

/**
 * The offer to pay: the first in a token whose units are known here, else the first.
 * @param currency what the seller calls the token of its first offer
 * @param signsFor whether there is a key for a chain; offers on others are taken where none has one
 * @param named the only network, by name or CAIP-2 id; undefined: any
 * @throws Error when there is none that `acg pay` can pay; names the first fault of an offer
 */
export function payableOffer(
  { accepts }: Pick<PaymentRequired, 'accepts'>,
  currency?: string,
  signsFor: (chainId: number) => boolean = () => true,
  named?: string,
): Offer {
  const only = named === undefined ? undefined : (NETWORK_NAMES.get(named) ?? named);
  let fault = '';
  const payable: Offer[] = [];
  for (const [at, requirements] of accepts.entries()) {
    if (only !== undefined && requirements.network !== only) continue;
    const chainId = eip155ChainId(requirements.network);
    const method = requirements.extra?.['assetTransferMethod'] ?? 'eip3009';
    if (chainId === undefined || method !== 'eip3009' || requirements.scheme !== 'exact') continue;
    const wrong = MEMBERS.find(([member, isRight]) => !isRight(requirements[member]));
    if (wrong === undefined) payable.push({ requirements, chainId, currency: at === 0 ? currency : undefined });
    else fault ||= ` (${wrong[0]} must be ${wrong[2]})`;
  }
  const signable = payable.filter(({ chainId }) => signsFor(chainId));
  const among = signable.length === 0 ? payable : signable;
  const found = among.find((offer) => knownToken(offer) !== undefined) ?? among[0];
  if (found !== undefined) return found;
  throw new Error(
    `nothing of what is offered${only === undefined ? '' : ` on ${only}`} can be paid here: acg pay signs exact on eip155 chains${fault}; offered: ${offered(accepts)}`,
  );
}

/** A sentence on the networks of the offers but for that of `paid`; empty for no other. */
export function elsewhere({ accepts }: Pick<PaymentRequired, 'accepts'>, paid: Offer): string {
  const networks = new Set(accepts.map(({ network }) => network).filter(isNetwork));
  networks.delete(paid.requirements.network);
  return networks.size === 0 ? '' : ` It is also offered on ${[...networks].join(', ')}; choose with --network.`;
}

/** At most eight offers in words; `?` stands for what has not the form that it must have. */
export function offered(accepts: PaymentRequired['accepts']): string {
  const isScheme = text(/^[a-z0-9-]{1,16}$/);
  const words = accepts
    .slice(0, 8)
    .map(({ scheme, asset, network }) =>
      [isScheme(scheme) ? scheme : '?', isAddress(asset) ? asset : '?', 'on', isNetwork(network) ? network : '?'].join(
        ' ',
      ),
    );
  return [...words, ...(accepts.length > 8 ? ['…'] : [])].join(', ');
}

/** The price in units of a known token; else in base units, and what the seller says of them. */
export function priceOf(offer: Offer): string {
  const { amount, asset, extra } = offer.requirements;
  const known = knownToken(offer);
  if (known !== undefined) return `${inUnits(amount, known.decimals)} ${known.symbol}`;
  const { symbol, name, decimals } = extra ?? {};
  const called = [symbol, name].find((word) => typeof word === 'string');
  const base = `${amount} base units of the token ${asset}`;
  const claim =
    Number.isInteger(decimals) && Number(decimals) >= 0 && Number(decimals) <= 36
      ? `, by the seller's word ${inUnits(amount, Number(decimals))}${called === undefined ? '' : ` ${plain(String(called))}`}`
      : called === undefined
        ? ''
        : `, which the seller calls ${plain(String(called))}`;
  return `${base}${claim}`;
}

/** What is paid, and on which network. */
export function paidIn(offer: Offer): string {
  return `${priceOf(offer)} on ${networkName(offer)}`;
}

export function networkName({ requirements: { network } }: Offer): string {
  const title = KNOWN_NETWORKS.get(network)?.title;
  return title === undefined ? network : `${title} (${network})`;
}

/**
 * Whether the price is above what a person wants to pay. `most`: units of the token such as `0.05`,
 * or base units such as `50000units`.
 * @throws UsageError for another text, and for units of a token that only the seller knows
 */
export function isAbove(offer: Offer, most: string): boolean {
  const { amount } = offer.requirements;
  const limit = baseUnits(most, knownToken(offer)?.decimals, 'max');
  if (limit !== undefined) return BigInt(amount) > limit;
  throw new UsageError(
    `the decimals of this token are known by the seller's word alone: give --max in base units, such as --max ${amount}units`,
  );
}

/**
 * A limit in base units; undefined for units of a token without known decimals.
 * @throws UsageError that names the option, for a text that is no amount
 */
export function baseUnits(most: string, decimals: number | undefined, option: string): bigint | undefined {
  const [, base] = /^(\d{1,78})units$/.exec(most) ?? [];
  if (base !== undefined) return BigInt(base);
  const [, whole, fraction = ''] = /^(\d{1,30})(?:\.(\d{1,36}))?$/.exec(most) ?? [];
  if (whole === undefined)
    throw new UsageError(`--${option} must be an amount such as 0.05 or 50000units, not ${most}`);
  if (decimals === undefined) return undefined;
  // What is below one base unit is no money.
  return BigInt(`${whole}${fraction.padEnd(decimals, '0').slice(0, decimals)}`);
}

/** Text of a server for a terminal, which obeys some characters. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
  return text.replaceAll(/[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, ' ').slice(0, 500);
}

/** The token of a network (CAIP-2) that prices are known in; undefined where none is. */
export function tokenOf(network: string): KnownToken | undefined {
  if (network === `eip155:${LOCAL_CHAIN_ID}`) return { ...LOCAL_TOKEN, symbol: LOCAL_CURRENCY };
  const usdc = KNOWN_NETWORKS.get(network)?.usdc;
  return usdc && { ...usdc, symbol: 'USDC' };
}

function knownToken({ requirements: { network, asset }, chainId, currency }: Offer): KnownToken | undefined {
  const token = tokenOf(network);
  if (token?.address.toLowerCase() !== asset.toLowerCase()) return undefined;
  return chainId === LOCAL_CHAIN_ID && currency !== undefined ? { ...token, symbol: plain(currency) } : token;
}

/** Base units as a decimal number of the token. */
export function inUnits(amount: string, decimals: number): string {
  const digits = amount.replace(/^0+(?=\d)/, '').padStart(decimals + 1, '0');
  const split = digits.length - decimals;
  const fraction = digits.slice(split).replace(/0+$/, '');
  return fraction === '' ? digits.slice(0, split) : `${digits.slice(0, split)}.${fraction}`;
}
