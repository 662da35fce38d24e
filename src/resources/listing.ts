/** The public form of a resource, which the list, MCP tools and A2A skills are made from. */

import { isObject, type Json, type JsonObject } from '../json/json.ts';
import { type Pricing, priceText } from '../payments/pricing/amount.ts';
import type { X402Config } from '../payments/x402/wire/settings.ts';
import type { Resource } from './resource.ts';
import type { ResourceConfig } from './settings.ts';

interface ListedPrice {
  readonly amount: string;
  readonly currency: string;
}

/** A price in a further asset or network. */
interface ListedAlternative extends ListedPrice {
  readonly network: string;
  readonly asset: string;
}

/** An entry of GET /api/resources (interface specification, part 2), without backend details. */
export interface ListedResource {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly method: string;
  readonly pricing:
    | { readonly type: 'free' }
    | (ListedPrice & { readonly type: 'fixed'; readonly alternatives?: readonly ListedAlternative[] });
  readonly exposedVia: readonly string[];
  /** Its address for sales by its own method, with `{param}`s; absent without channel `origin`. */
  readonly address?: string;
  /** Words for catalogues; absent without any. */
  readonly tags?: readonly string[];
  readonly paymentMethods: readonly string[];
  /** Absent where nothing but money is needed. */
  readonly authorization?: { readonly required: readonly string[] };
}

/**
 * Built field by field, never by spreading configuration. `inputSchema`: the closed form.
 * `entries`: of `payments.x402`.
 */
export function listedResource(
  resource: ResourceConfig,
  inputSchema: JsonObject,
  entries: readonly Pick<X402Config, 'network' | 'asset'>[],
): ListedResource {
  return {
    id: resource.id,
    name: resource.name,
    ...(resource.description === undefined ? {} : { description: resource.description }),
    inputSchema,
    ...(resource.outputSchema === undefined ? {} : { outputSchema: resource.outputSchema }),
    method: resource.backend.method,
    pricing: listedPricing(resource.pricing, entries),
    exposedVia: resource.exposedVia,
    ...(resource.address === undefined ? {} : { address: resource.address }),
    ...(resource.labels.tags === undefined ? {} : { tags: resource.labels.tags }),
    paymentMethods: resource.paymentMethods,
    ...(resource.authorization.length === 0 ? {} : { authorization: { required: resource.authorization } }),
  };
}

function listedPricing(
  pricing: Pricing,
  entries: readonly Pick<X402Config, 'network' | 'asset'>[],
): ListedResource['pricing'] {
  if (pricing.type === 'free') return { type: 'free' };
  const alternatives = (pricing.others ?? []).flatMap(({ amount, currency, entry = 0 }) => {
    const found = entries[entry];
    return found === undefined ? [] : [{ amount, currency, network: found.network, asset: found.asset }];
  });
  const { amount, currency } = pricing;
  return { type: 'fixed', amount, currency, ...(alternatives.length > 0 ? { alternatives } : {}) };
}

/** Texts behind the price and behind the need of a mandate, each with a space before. */
interface Advice {
  readonly pay: string;
  readonly authorize: string;
}

/** The text for a model: description or name, the price, and whether a mandate is needed. */
export function describedWithPrice(
  resource: Pick<ListedResource, 'name' | 'description' | 'pricing' | 'authorization'>,
  { pay, authorize }: Advice = WITHOUT_CHANNEL,
): string {
  const { name, description = name, pricing } = resource;
  const mandate = asksForMandate(resource) ? ` Needs an AP2 mandate${authorize}.` : '';
  if (pricing.type === 'free' && mandate === '') return description;
  const sentence = /[.!?]$/.test(description) ? description : `${description}.`;
  const price = pricing.type === 'free' ? '' : ` Costs ${listedPriceText(pricing)} per call${pay}.`;
  return `${sentence}${price}${mandate}`;
}

/** The price for a reader, with the alternatives that differ from it. */
export function listedPriceText(pricing: Extract<ListedResource['pricing'], { type: 'fixed' }>): string {
  return priceText([pricing, ...(pricing.alternatives ?? [])]);
}

export function asksForMandate({ authorization }: Pick<ListedResource, 'authorization'>): boolean {
  return authorization?.required.includes('ap2') === true;
}

const WITHOUT_CHANNEL: Advice = {
  pay: '',
  authorize:
    ' in the header Agent-Authorization or the input member _authorization: call it without one and the answer has the checkout to ' +
    'make it for',
};

/** The first valid input in the schema: an example, the default, or those of properties joined. */
export function exampleInput(
  schema: JsonObject,
  compiled: Pick<Resource, 'prepare'> | undefined,
): JsonObject | undefined {
  const { required } = schema;
  const names = Array.isArray(required) ? (required as readonly string[]) : [];
  return (
    [...examplesIn(schema), fromProperties(schema)]
      .filter((candidate) => isObject(candidate))
      // Tested first: the validator, asked next, may have to be compiled.
      .filter((candidate) => names.every((name) => Object.hasOwn(candidate, name)))
      .find((candidate) => compiled?.prepare(candidate, undefined).ok === true)
  );
}

function fromProperties({ properties }: JsonObject): JsonObject {
  const input: Record<string, Json> = {};
  for (const [name, schema] of Object.entries(isObject(properties) ? properties : {})) {
    const [first] = isObject(schema) ? examplesIn(schema) : [];
    if (first !== undefined) input[name] = first;
  }
  return input;
}

function examplesIn({ examples, default: usual }: JsonObject): readonly Json[] {
  return [...(Array.isArray(examples) ? (examples as readonly Json[]) : []), ...(usual === undefined ? [] : [usual])];
}
