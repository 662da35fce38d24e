/** The check of the gateway that runs here: it sells what the configuration says, to this payee. */

import { configuredEntries, type GatewayConfig } from '../../config/document/config.ts';
import { canonicalJson, isObject, type Json } from '../../json/json.ts';
import { type Pricing, pricesOf, priceText } from '../../payments/pricing/amount.ts';
import { type ListedPricing, listedRule } from '../../resources/listing.ts';
import { localAddress } from '../gateway-client.ts';
import { bodyText, httpGet } from '../http-get.ts';
import { visible } from '../output.ts';
import { type Check, type Finding, failed, passed, skipped, warned } from './check.ts';

const WAIT_MS = 3_000;
/** The list of 10,000 resources with a page of schema each. */
const MAX_BYTES = 67_108_864;
/** Most differences that are named. */
const MOST_NAMED = 5;
const OLDER =
  'restart it with this configuration; acg_config_outdated and the log line "config rejected" tell why it was not read';

/** Public documents of the server at the address of the configuration. */
type Published = { readonly discovery: Json; readonly resources: Json } | 'nothing' | 'stranger';

/** Asks the gateway at most once. `needed`: it fails where nothing listens. */
export function runningGateway(
  config: GatewayConfig,
  needed = false,
): { readonly check: Check; isServed(): Promise<boolean> } {
  let asked: Promise<Published> | undefined;
  const published = (): Promise<Published> => {
    asked ??= publishedAt(config);
    return asked;
  };
  return {
    check: {
      name: 'running gateway',
      run: async () => compared(config, await published(), needed),
    },
    isServed: async () => typeof (await published()) === 'object',
  };
}

async function publishedAt(config: GatewayConfig): Promise<Published> {
  const { url, host } = localAddress(config);
  const headers = host === undefined ? {} : { host };
  const read = async (path: string): Promise<Json> => {
    const response = await httpGet(`${url}${path}`, { headers, silentMs: WAIT_MS });
    return JSON.parse(await bodyText(url, response, MAX_BYTES)) as Json;
  };
  try {
    const [discovery, resources] = await Promise.all([read('/.well-known/agent-commerce'), read('/api/resources')]);
    return isObject(discovery) && isObject(discovery['merchant']) ? { discovery, resources } : 'stranger';
  } catch (thrown) {
    return thrown instanceof SyntaxError ? 'stranger' : 'nothing';
  }
}

function compared(config: GatewayConfig, published: Published, needed: boolean): Finding {
  const { url } = localAddress(config);
  if (published === 'nothing') {
    const found = `nothing listens at ${url}`;
    return needed ? failed(found, 'start the gateway of this configuration, and ask again') : skipped(found);
  }
  if (published === 'stranger')
    return failed(`${url} is taken by something that is no gateway`, 'end it, or choose another server.port');
  const differences = [
    ...differingFacts(config, published.discovery),
    ...differingResources(config, resourcesIn(published.resources)),
  ];
  if (differences.length === 0) return passed(`the one at ${url} sells what the configuration says`);
  const more = differences.length > MOST_NAMED ? ` and ${differences.length - MOST_NAMED} more` : '';
  return warned(
    `the one at ${url} runs another configuration: ${differences.slice(0, MOST_NAMED).join('; ')}${more}`,
    OLDER,
  );
}

function differingFacts(config: GatewayConfig, discovery: Json): readonly string[] {
  const payments = memberAt(discovery, ['payments', 'x402']);
  const others = memberAt(payments, ['alternatives']);
  const published = [payments, ...(Array.isArray(others) ? others : [])];
  const offered = configuredEntries(config).filter(({ x402 }) => x402.offered);
  const facts: readonly (readonly [path: string, expected: string | undefined, found: Json | undefined])[] = [
    ['merchant.id', config.merchant.id, memberAt(discovery, ['merchant', 'id'])],
    ...Array.from({ length: Math.max(offered.length, published.length) }, (_, index) =>
      (['network', 'asset', 'payTo'] as const).map((name) => {
        const at = index === 0 ? 'payments.x402' : `payments.x402.alternatives[${index - 1}]`;
        return [`${at}.${name}`, offered[index]?.x402[name], memberAt(published[index], [name])] as const;
      }),
    ).flat(),
  ];
  return facts.flatMap(([path, expected, found]) =>
    found === expected ? [] : [`its ${path} is ${shown(found)}, not ${expected ?? 'missing'}`],
  );
}

/** The differences in resources and prices. */
function differingResources({ resources }: GatewayConfig, listed: ReadonlyMap<string, string>): readonly string[] {
  const own = new Map(resources.map(({ id, pricing }) => [id, configuredPrice(pricing)]));
  return [...new Set([...own.keys(), ...listed.keys()])].flatMap((id) => {
    const [expected, found] = [own.get(id), listed.get(id)];
    if (expected === found) return [];
    if (found === undefined) return [`it does not sell ${id}`];
    const name = shown(id);
    return expected === undefined ? [`it sells ${name}`] : [`it sells ${name} for ${shown(found)}, not ${expected}`];
  });
}

function resourcesIn(document: Json): ReadonlyMap<string, string> {
  const listed = isObject(document) && Array.isArray(document['resources']) ? document['resources'] : [];
  return new Map(
    listed.filter(isObject).map(({ id = '', pricing }) => [
      String(id),
      // A gateway of another release may list any price, which then differs.
      isObject(pricing) ? listedPrice(pricing as ListedPricing) : 'unknown',
    ]),
  );
}

function configuredPrice(pricing: Pricing): string {
  if (pricing.type === 'free') return 'free';
  return priceOf(pricesOf(pricing), pricing.by && listedRule(pricing.by));
}

function listedPrice(pricing: ListedPricing): string {
  if (pricing.type !== 'fixed') return pricing.type;
  return priceOf([pricing, ...(pricing.alternatives ?? [])], pricing.by);
}

/** `by`: of any form. */
function priceOf(prices: Parameters<typeof priceText>[0], by: unknown): string {
  return priceText(prices) + (by === undefined ? '' : ` by ${canonicalJson(by as Json)}`);
}

function memberAt(document: Json | undefined, [name, ...names]: readonly string[]): Json | undefined {
  if (name === undefined) return document;
  return memberAt(isObject(document) ? document[name] : undefined, names);
}

function shown(value: Json | undefined): string {
  return value === undefined ? 'missing' : visible(typeof value === 'string' ? value : JSON.stringify(value));
}
