/** `resources`: what is sold, by which adapters, at which price and under which mandate. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { Channel } from '../../events/event.ts';
import { AmountError, type Price, type Pricing, parseAmount, pricesOf } from '../../payments/pricing/amount.ts';
import { highestOf, lowestOf } from '../../payments/pricing/by-input.ts';
import { leastSecondsToPay } from '../../payments/x402/wire/proof.ts';
import type { Labels } from '../../payments/x402/wire/types.ts';
import { type ConfigProblem, memberPath, ProblemList } from '../../problems/problem.ts';
import { bazaarFaults, inputFaults, operationFaults, outputFaults, templateFaults } from '../../resources/check.ts';
import { isRepeatable } from '../../resources/resource.ts';
import type { ResourceFault } from '../../resources/schemas/keywords.ts';
import type { ResourceConfig } from '../../resources/settings.ts';
import { comparisonFault, pathShape, templateParameters } from '../../resources/url-template.ts';
import type { ResourceDocument } from '../document/document.ts';
import type { MandateSetting } from './ap2.ts';
import { type BackendBase, lowerHeaders } from './backend.ts';
import { derivePriceRule, type RuleSurroundings } from './price-rule.ts';
import { MAKE_A_KEY, SEALING_KEYS } from './storage.ts';
import { currenciesOf, type X402Entry } from './x402.ts';

const BACKEND = schema.$defs.resource.properties.backend.properties;

/** Milliseconds and bytes of a resource that sets none. */
export const USUAL_LIMITS = {
  timeoutMs: BACKEND.timeoutMs.default,
  maxResponseBytes: BACKEND.maxResponseBytes.default,
} as const;

/** Never relayed: it would make agents pay again. */
const PAYMENT_REQUIRED_STATUS = 402;
type FixedPricing = Extract<ResourceDocument['pricing'], { type: 'fixed' }>;
type RelayStatuses = ResourceConfig['backend']['relayStatuses'];
const NONE_RELAYED: RelayStatuses = { sold: [], unpaid: [] };
/** Time for the buyer from a 402 to the proof that answers it. */
const SIGNING_SECONDS = 10;
/** Ids that the grammar allows, but a URL parser removes as path segments. */
const DOT_SEGMENTS: ReadonlySet<string> = new Set(['.', '..']);

/** Other sections that a resource is derived from. */
export interface ResourceSurroundings {
  /** Without a trailing slash. */
  readonly publicBaseUrl: string;
  /** Labels that all resources share. */
  readonly labels: Omit<Labels, 'tags'>;
  /** Whether unsold paths pass to the backend. */
  readonly passes: boolean;
  readonly backend: BackendBase;
  /** Undefined when it cannot be told. */
  readonly enabled: ReadonlySet<Channel> | undefined;
  readonly assets: PriceAssets;
  readonly mandates: MandateSetting;
  /** Whether the store seals values; true, too, where the keys were refused. */
  readonly seals: boolean;
}

/**
 * Derives one resource; undefined where it cannot be compared with others. Each rule applies where
 * its own input was accepted, whatever else of the resource was refused.
 */
export function deriveResource(
  id: string,
  document: ResourceDocument,
  surroundings: ResourceSurroundings,
  problems: ProblemList,
): ResourceConfig | undefined {
  const { publicBaseUrl, passes, backend, enabled, assets, mandates } = surroundings;
  const path = memberPath('resources', id);
  // Most of thousands of resources have no fault: the paths of their keys are not made.
  const isSound = problems.sound(path);
  const accepted = (...keys: readonly string[]): boolean =>
    isSound || problems.sound(...keys.map((key) => `${path}.${key}`));
  if (DOT_SEGMENTS.has(id)) problems.add(path, 'must not be named . or ..');
  const operated = {
    inputSchema: accepted('inputSchema') ? document.inputSchema : ('refused' as const),
    pathPrefix: backend.pathPrefix,
  };
  const pricing = accepted('pricing') ? derivePricing(document.pricing, assets, operated, path, problems) : undefined;
  const free = accepted('pricing.type') ? document.pricing.type === 'free' : undefined;
  const settled = pricing?.type === 'fixed' ? (pricing.settle ?? 'before') : undefined;
  const relayStatuses = accepted('backend.relayStatuses')
    ? deriveRelayed(document.backend.relayStatuses, free ? 'free' : settled, `${path}.backend.relayStatuses`, problems)
    : NONE_RELAYED;
  const headers = accepted('backend.headers')
    ? lowerHeaders(document.backend.headers, `${path}.backend.headers`, problems)
    : {};
  const exposedVia = accepted('expose') ? mounted(document.expose, enabled, path, problems) : [];
  if (pricing?.type === 'fixed' && pricing.settle === 'after' && accepted('backend'))
    checkSettledAfter(document.backend, pricing, surroundings, path, problems);
  if (pricing !== undefined && accepted('expose', 'bazaar'))
    refuse(bazaarFaults({ bazaar: document.bazaar, pricing, exposedVia }), path, problems);
  const methods = accepted('payments') ? paymentMethods(document.payments, free, path, problems) : [];
  const mandated = accepted('authorization') ? requiredMandates(document, pricing, mandates, path, problems) : [];
  if (accepted('inputSchema') && document.inputSchema !== undefined)
    refuse(inputFaults(document.inputSchema), path, problems);
  if (accepted('outputSchema') && document.outputSchema !== undefined)
    refuse(outputFaults(document.outputSchema), path, problems);
  if (!accepted('backend.path')) return undefined;
  refuse(templateFaults(document.backend.path), path, problems);
  if (!accepted('backend.method', 'backend.inputBindings', 'backend.contentType', 'inputSchema', 'expose'))
    return undefined;
  const operation = {
    backend: {
      ...operationOf(document.backend, { ...backend, headers: { ...backend.headers, ...headers } }),
      relayStatuses,
    },
    inputSchema: document.inputSchema,
    address: exposedVia.includes('origin') ? publicBaseUrl + document.backend.path.replace(/\?.*/, '') : undefined,
  };
  refuse(operationFaults(operation), path, problems);
  const isGuarded = free === false || mandated.length > 0;
  const unguardable =
    passes && isGuarded && operation.address === undefined ? comparisonFault(document.backend.path) : undefined;
  if (unguardable !== undefined)
    problems.add(`${path}.backend.path`, `cannot be kept from passing to the backend: it ${unguardable}`);
  if (pricing === undefined) return undefined;
  return {
    id,
    name: document.name,
    description: document.description,
    outputSchema: document.outputSchema,
    mimeType: document.mimeType,
    labels: { ...surroundings.labels, ...(document.tags?.length ? { tags: document.tags } : {}) },
    ...operation,
    pricing,
    exposedVia,
    paymentMethods: methods,
    authorization: mandated,
    bazaar: document.bazaar,
  };
}

function refuse(faults: readonly ResourceFault[], path: string, problems: ProblemList): void {
  for (const fault of faults) problems.add(`${path}.${fault.path}`, fault.message);
}

/**
 * A list leaves the money as the order of payment and call does: a payment that is settled before
 * is kept, one that is settled after is not taken. `settled`: undefined where the price was
 * refused.
 */
function deriveRelayed(
  listed: ResourceDocument['backend']['relayStatuses'],
  settled: 'free' | 'before' | 'after' | undefined,
  path: string,
  problems: ProblemList,
): RelayStatuses {
  const isList = 'length' in listed;
  const ofList = isList ? { [settled === 'after' ? 'unpaid' : 'sold']: listed } : listed;
  const relayed = { ...NONE_RELAYED, ...ofList };
  const { sold, unpaid } = relayed;
  for (const [kind, statuses] of Object.entries(relayed))
    if (statuses.includes(PAYMENT_REQUIRED_STATUS))
      problems.add(isList ? path : `${path}.${kind}`, 'must not have 402: agents would pay for it');
  const twice = sold.find((status) => unpaid.includes(status));
  if (twice !== undefined) problems.add(path, `must not have ${twice} in both sold and unpaid; keep one`);
  if (settled === 'free' && !isList)
    problems.add(path, `must be a list for a free resource: ${JSON.stringify([...sold, ...unpaid])}`);
  if (settled === 'before' && unpaid.length > 0)
    problems.add(
      `${path}.unpaid`,
      'needs pricing.settle: after: the payment is settled before the backend answers; set that, or move these statuses to sold',
    );
  return relayed;
}

/**
 * Checks a resource whose backend answers before the money moves. The backend may work unpaid, and
 * again for the same payment; the answer waits in the store.
 */
function checkSettledAfter(
  { method, idempotent, safeUnpaid, timeoutMs }: ResourceDocument['backend'],
  pricing: Pricing,
  { assets, seals }: ResourceSurroundings,
  path: string,
  problems: ProblemList,
): void {
  const at = `${path}.pricing.settle`;
  if (!(safeUnpaid || isRepeatable({ method, idempotent })))
    problems.add(
      at,
      `cannot be after: a ${method} may do something that is not paid in the end; set backend.idempotent or backend.safeUnpaid where that does no harm`,
    );
  if (!seals) problems.add(at, `needs ${SEALING_KEYS}: answers wait in the store until they are paid; ${MAKE_A_KEY}`);
  const least = leastSecondsToPay(timeoutMs) + SIGNING_SECONDS;
  const entries = assets.kind === 'known' ? pricesOf(pricing).map(({ entry = 0 }) => assets.entries[entry]) : [];
  for (const { at: entryAt, maxTimeoutSeconds = least } of entries.filter((entry) => entry !== undefined))
    if (maxTimeoutSeconds < least)
      problems.add(
        at,
        `needs ${entryAt}.maxTimeoutSeconds of at least ${least}: the call may take ${timeoutMs} ms, and then its payment is settled`,
      );
}

/** `headers`: those of the resource among them. */
function operationOf(
  operation: ResourceDocument['backend'],
  { pathPrefix, headers }: BackendBase,
): Omit<ResourceConfig['backend'], 'relayStatuses'> {
  const {
    path,
    inputBindings: bindings,
    safeUnpaid: _safeUnpaid,
    relayStatuses: _relayStatuses,
    ...others
  } = operation;
  return {
    ...others,
    path: pathPrefix + path,
    headers,
    inputBindings: bindings && {
      path: bindings.path ?? templateParameters(path),
      query: bindings.query ?? [],
      body: bindings.body ?? [],
      styles: new Map(Object.entries(bindings.styles ?? {})),
    },
  };
}

/**
 * The enabled adapters that offer a resource, and its own address, which needs no adapter. A
 * resource without any of them is a mistake.
 */
function mounted(
  expose: readonly Channel[],
  enabled: ReadonlySet<Channel> | undefined,
  path: string,
  problems: ProblemList,
): readonly Channel[] {
  if (enabled === undefined) return expose;
  const channels = expose.filter((channel) => channel === 'origin' || enabled.has(channel));
  if (channels.length === 0)
    problems.add(
      `${path}.expose`,
      `must name at least one adapter that is enabled; set protocols.${expose[0]}.enabled: true, or name another one`,
    );
  return channels;
}

function paymentMethods(
  configured: readonly 'x402'[] | undefined,
  free: boolean | undefined,
  path: string,
  problems: ProblemList,
): readonly 'x402'[] {
  if (free === undefined) return [];
  const methods = configured ?? (free ? [] : ['x402']);
  if (free && methods.length > 0) problems.add(`${path}.payments`, 'must be empty for a free resource');
  if (!free && methods.length === 0) problems.add(`${path}.payments`, 'must have x402 for a resource with a price');
  return methods;
}

/** The mandates that a resource requires. Without a trusted issuer no buyer could pay for it. */
function requiredMandates(
  document: Pick<ResourceDocument, 'authorization' | 'pricing'>,
  derived: Pricing | undefined,
  mandates: MandateSetting,
  path: string,
  problems: ProblemList,
): readonly 'ap2'[] {
  const { required } = document.authorization;
  if (required.length === 0 || mandates.kind === 'unsound') return required;
  if (mandates.kind === 'off') {
    problems.add(
      `${path}.authorization.required`,
      'needs authorization.ap2.enabled: true, and its checkout and issuers, on the top level of this document',
    );
    return required;
  }
  if (!mandates.trusting)
    problems.add('authorization.ap2.issuers', `is missing: ${path} requires ap2, and no mandate would be trusted`);
  const { pricing } = document;
  if (problems.sound(`${path}.pricing`) && pricing.type === 'fixed' && derived?.type === 'fixed') {
    const most = derived.by && { amount: highestOf(derived.by), at: `${path}.pricing.by` };
    for (const price of writtenPrices(pricing, path)) checkPrice({ ...price, ...most }, mandates.exponents, problems);
  }
  return required;
}

/** AP2 counts in minor units, which JSON must hold exactly (ap2 7.3). */
function checkPrice(
  { amount, currency, at: path }: WrittenPrice,
  exponents: ReadonlyMap<string, number>,
  problems: ProblemList,
): void {
  const exponent = exponents.get(currency);
  const [whole = '', fraction = ''] = amount.split('.');
  // Problems of the price itself are reported already.
  if (exponent === undefined || !problems.sound(path)) return;
  if (fraction.length > exponent)
    problems.add(path, `must have at most ${exponent} digits behind the point with ap2: those of ${currency}`);
  else if (!Number.isSafeInteger(Number(whole + fraction.padEnd(exponent, '0'))))
    problems.add(path, 'must be less than 2^53 of the smallest units of its currency with ap2');
}

/** The facts of an entry of `payments.x402` that prices are read with. */
interface PriceAsset {
  /** Its path. */
  readonly at: string;
  readonly decimals: number;
  /** Names of the token: its EIP-712 name, and the declared currency ("USD Coin" or "USDC"). */
  readonly currencies: readonly string[];
  readonly offered: boolean;
  /** Undefined where it was refused. */
  readonly maxTimeoutSeconds: number | undefined;
}

/** `absent`: the gateway takes no money; `unsound`: the section was refused already. */
export type PriceAssets =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unsound' }
  | { readonly kind: 'known'; readonly entries: readonly PriceAsset[] };

export function priceAssets(entries: readonly X402Entry[], problems: ProblemList): PriceAssets {
  if (entries.length === 0) return { kind: 'absent' };
  const isSound = ({ at }: X402Entry): boolean =>
    problems.sound(...['assetDecimals', 'assetName', 'currency', 'offered'].map((key) => `${at}.${key}`));
  if (!entries.every(isSound)) return { kind: 'unsound' };
  return {
    kind: 'known',
    entries: entries.map(({ at, entry }) => ({
      at,
      decimals: entry.assetDecimals,
      currencies: currenciesOf(entry),
      offered: entry.offered,
      maxTimeoutSeconds: problems.sound(`${at}.maxTimeoutSeconds`) ? entry.maxTimeoutSeconds : undefined,
    })),
  };
}

/** A price as configured, with the paths of its amount and its currency. */
interface WrittenPrice {
  readonly amount: string;
  readonly currency: string;
  readonly at: string;
  readonly currencyAt: string;
}

function writtenPrices({ amounts, amount = '', currency = '' }: FixedPricing, path: string): readonly WrittenPrice[] {
  const own = `${path}.pricing`;
  if (amounts === undefined) return [{ amount, currency, at: `${own}.amount`, currencyAt: `${own}.currency` }];
  return Object.entries(amounts).map(([name, text]) => {
    const at = memberPath(`${own}.amounts`, name);
    return { amount: text, currency: name, at, currencyAt: at };
  });
}

/**
 * The price in each offered entry whose token the price names, in the order of the entries. An
 * entry that is not offered keeps its currency known, so that it can be taken back.
 */
function derivePricing(
  pricing: ResourceDocument['pricing'],
  assets: PriceAssets,
  operated: Omit<RuleSurroundings, 'charges'>,
  path: string,
  problems: ProblemList,
): Pricing | undefined {
  if (pricing.type === 'free') return { type: 'free' };
  if (assets.kind === 'absent') problems.add(`${path}.pricing`, 'needs payments.x402, else it cannot be paid');
  if (assets.kind !== 'known') return undefined;
  const { entries } = assets;
  const indexed = entries.map((asset, entry) => ({ ...asset, entry }));
  const offered = indexed.filter((one) => one.offered);
  const [preferred] = offered;
  if (preferred === undefined) {
    const where = entries.length > 1 ? ' in one entry at least' : '';
    problems.add(`${entries[0]?.at}.offered`, `must be true${where} while a resource has a price: it cannot be paid`);
    return undefined;
  }
  const units = (price: Pick<WrittenPrice, 'amount' | 'at'>, { decimals, at }: PriceAsset): bigint | undefined =>
    unitsOf(price, decimals, offered.length > 1 ? `${decimals} of ${at}` : `${decimals}`, problems);
  const joins = ({ currencies }: PriceAsset): boolean => currencies.includes(pricing.currency ?? '');
  const charges = (amount: string, at: string): boolean =>
    offered.filter(joins).every((asset) => units({ amount, at }, asset) !== undefined);
  const by = deriveBy(pricing, { ...operated, charges }, path, problems);
  // The amounts of a refused rule are checked already.
  const lowest = pricing.by && { amount: by === undefined ? '1' : lowestOf(by) };
  const written = writtenPrices({ ...pricing, ...lowest }, path);
  // The declared currency comes before the EIP-712 name, which many tokens share.
  const priceIn = ({ currencies }: PriceAsset): WrittenPrice | undefined =>
    currencies.map((name) => written.find(({ currency }) => currency === name)).find((price) => price !== undefined);
  const known = offered.some((asset) => priceIn(asset) !== undefined) ? entries : offered;
  for (const price of written.filter((one) => !known.some((asset) => priceIn(asset) === one))) {
    const same = known.find(({ currencies }) => currencies.includes(price.currency));
    const other = same && priceIn(same)?.currency;
    problems.add(
      price.currencyAt,
      other === undefined ? currencyProblem(price, offered) : `is ${other} of ${same?.at} by another name; keep one`,
    );
    units(price, preferred);
  }
  const pricesIn = (all: typeof offered, unitsIn: typeof units): readonly Price[] =>
    all.flatMap((asset) => {
      const own = priceIn(asset);
      const inUnits = own && unitsIn(own, asset);
      if (own === undefined || inUnits === undefined) return [];
      const { entry } = asset;
      const { amount, currency } = own;
      return [{ amount, currency, units: inUnits, ...(entry === 0 ? {} : { entry }) }];
    });
  const [first, ...others] = pricesIn(offered, units);
  // A price that cannot be charged there is no fault: it is not charged.
  const ended = pricesIn(
    indexed.filter((one) => !one.offered),
    (price, { decimals }) => unitsOf(price, decimals, '', new ProblemList()),
  );
  if (first === undefined || !problems.sound(`${path}.pricing`)) return undefined;
  if (pricing.by !== undefined && by === undefined) return undefined;
  const settle = pricing.settle === 'after' ? { settle: pricing.settle } : {};
  const elsewhere = { ...(others.length > 0 ? { others } : {}), ...(ended.length > 0 ? { ended } : {}) };
  return { type: 'fixed', ...first, ...settle, ...elsewhere, ...(by && { by }) };
}

/** Undefined without a rule, and after a problem. */
function deriveBy(pricing: FixedPricing, operated: RuleSurroundings, path: string, problems: ProblemList) {
  const { amount, amounts, by } = pricing;
  if (by === undefined) return undefined;
  if (amounts !== undefined) {
    problems.add(
      `${path}.pricing.by`,
      'needs amount and currency in the place of amounts: its amounts are in one currency',
    );
    return undefined;
  }
  return derivePriceRule({ amount, by }, `${path}.pricing`, operated, problems);
}

/** Refuses a price that the asset cannot hold exactly: it would be charged wrong. */
function unitsOf(
  { amount, at }: Pick<WrittenPrice, 'amount' | 'at'>,
  decimals: number,
  told: string,
  problems: ProblemList,
) {
  try {
    const units = parseAmount(amount, decimals);
    if (units > 0n) return units;
    problems.add(at, 'must be more than zero; use type: free to give it away');
  } catch (error) {
    if (!(error instanceof AmountError)) throw error;
    const bound = error.reason === 'too_precise' ? ` (${told})` : '';
    problems.add(at, `must be a price that can be charged exactly: ${error.message}${bound}`);
  }
  return undefined;
}

/** Names the accepted currencies, and the setting for another name of the token. */
function currencyProblem({ at, currencyAt }: WrittenPrice, offered: readonly PriceAsset[]): string {
  const [first, ...others] = new Set(offered.flatMap(({ currencies }) => currencies));
  const names = `${at === currencyAt ? 'the key ' : ''}must be ${[first, ...others].map((name) => `"${name}"`).join(' or ')}`;
  return others.length > 0
    ? `${names}: no offered entry of payments.x402 has another one`
    : `${names}, or set ${offered[0]?.at}.currency to what prices call this token`;
}

/**
 * Problems of resources with one method and overlapping addresses, where a server may run either,
 * and one is sold at its own address or their terms differ. One operation may be two resources, if
 * only one of them is sold in place. Each resource is compared with those before it, and named
 * once.
 */
export function addressOverlaps(resources: readonly ResourceConfig[]): readonly ConfigProblem[] {
  const roots = new Map<string, Node>();
  return resources.flatMap((resource) => {
    const { method, path: template } = resource.backend;
    const operation = { resource, shape: pathShape(template), terms: termsOf(resource) };
    const root = roots.get(method) ?? { below: new Map(), operations: [] };
    roots.set(method, root);
    const segments = operation.shape.split('/').map((segment) => (segment.includes(ANY) ? ANY : segment));
    const other = overlapping(root, segments, operation);
    add(root, segments, operation);
    if (other === undefined) return [];
    const path = `${memberPath('resources', resource.id)}.backend.path`;
    const why =
      resource.address !== undefined || other.address !== undefined
        ? 'while one of them is sold at its own address'
        : 'while their prices or mandates differ: a server may run either of them there';
    const message = `must not be an address of resources.${other.id} too ${why}`;
    return [{ path, message }];
  });
}

/** Problems of quotes whose question is an operation that is for sale: it would run unpaid. */
export function quotesOfSales(resources: readonly ResourceConfig[]): readonly ConfigProblem[] {
  const sold = resources.filter(({ backend, pricing }) => backend.method === 'POST' && pricing.type !== 'free');
  return resources.flatMap(({ id, pricing }) => {
    const rule = pricing.type === 'free' ? undefined : pricing.by;
    if (rule?.kind !== 'quote') return [];
    const same = sold.find(({ backend }) => backend.path === rule.path);
    const path = `${memberPath('resources', id)}.pricing.by.quote.path`;
    return same === undefined
      ? []
      : [{ path, message: `must not be the operation of resources.${same.id}: each quote would run it unpaid` }];
  });
}

/** Equal for resources of one price that need the same mandates. */
export function termsOf({ pricing, authorization }: Pick<ResourceConfig, 'pricing' | 'authorization'>): string {
  const prices = pricesOf(pricing).map(({ units, currency, entry = 0 }) => `${units} ${currency} ${entry}`);
  const by = pricing.type === 'free' || pricing.by === undefined ? [] : [JSON.stringify(pricing.by)];
  return [...prices, ...by, ...authorization].join(' ');
}

interface Operation {
  readonly resource: ResourceConfig;
  /** Equal for two that differ in case and in the names of parameters alone. */
  readonly shape: string;
  /** Equal for two of one price that need the same mandates. */
  readonly terms: string;
}

/** A segment of paths. */
interface Node {
  /** Nodes by the text of the next segment. */
  readonly below: Map<string, Node>;
  /** The operations whose path ends here. */
  readonly operations: Operation[];
}

/** A segment with a parameter: it may have any text, but is never empty where something is sold. */
const ANY = '{}';

function add(node: Node, [segment, ...rest]: readonly string[], operation: Operation): void {
  if (segment === undefined) {
    node.operations.push(operation);
    return;
  }
  const next = node.below.get(segment) ?? { below: new Map(), operations: [] };
  node.below.set(segment, next);
  add(next, rest, operation);
}

/** A resource before this one that a server may run at an address of this one. */
function overlapping(
  node: Node,
  [segment, ...rest]: readonly string[],
  operation: Operation,
): ResourceConfig | undefined {
  if (segment === undefined) return node.operations.find((other) => collides(operation, other))?.resource;
  const texts = segment === ANY ? [...node.below.keys()] : [segment, ANY];
  for (const text of texts) {
    const next = (text === '') === (segment === '') ? node.below.get(text) : undefined;
    const found = next && overlapping(next, rest, operation);
    if (found !== undefined) return found;
  }
  return undefined;
}

function collides(one: Operation, other: Operation): boolean {
  const sold = [one, other].filter(({ resource }) => resource.address !== undefined).length;
  return sold === 2 || (one.shape !== other.shape && (sold === 1 || one.terms !== other.terms));
}
