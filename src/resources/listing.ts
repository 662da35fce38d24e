/** The public form of a resource, which the list, MCP tools and A2A skills are made from. */

import { isObject, type Json, type JsonObject } from '../json/json.ts';
import { type Pricing, pricesOf, priceText } from '../payments/pricing/amount.ts';
import type { ChoiceRule, Measure, PriceRule, QuoteRule, TierRule, UnitRule } from '../payments/pricing/by-input.ts';
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
  readonly pricing: ListedPricing;
  readonly exposedVia: readonly string[];
  /** Its address for sales by its own method, with `{param}`s; absent without channel `origin`. */
  readonly address?: string;
  /** Words for catalogues; absent without any. */
  readonly tags?: readonly string[];
  readonly paymentMethods: readonly string[];
  /** Absent where nothing but money is needed. */
  readonly authorization?: { readonly required: readonly string[] };
}

/** A public price. `amount`: the lowest where `by` is there. */
export type ListedPricing =
  | { readonly type: 'free' }
  | (ListedPrice & {
      readonly type: 'fixed';
      readonly alternatives?: readonly ListedAlternative[];
      readonly by?: ListedRule;
    });

/** How a price follows the input, as configured, with the measure. `unit.amount`: of one unit. */
type ListedRule =
  | { readonly unit: Omit<UnitRule, 'kind'> }
  | { readonly tier: Omit<TierRule, 'kind'> }
  | { readonly choice: Omit<ChoiceRule, 'kind'> }
  | { readonly quote: Pick<QuoteRule, 'min' | 'max'> };

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

function listedPricing(pricing: Pricing, entries: readonly Pick<X402Config, 'network' | 'asset'>[]): ListedPricing {
  if (pricing.type === 'free') return { type: 'free' };
  const alternatives = (pricing.others ?? []).flatMap(({ amount, currency, entry = 0 }) => {
    const found = entries[entry];
    return found === undefined ? [] : [{ amount, currency, network: found.network, asset: found.asset }];
  });
  const { amount, currency, by } = pricing;
  return {
    type: 'fixed',
    amount,
    currency,
    ...(alternatives.length > 0 ? { alternatives } : {}),
    ...(by === undefined ? {} : { by: listedRule(by) }),
  };
}

/** The path of a quote is the backend's own. */
export function listedRule(rule: PriceRule): ListedRule {
  switch (rule.kind) {
    case 'unit': {
      const { pointer, of, amount, min, max } = rule;
      return { unit: { pointer, of, amount, min, max } };
    }
    case 'tier':
      return { tier: { pointer: rule.pointer, of: rule.of, steps: rule.steps } };
    case 'choice':
      return { choice: { pointer: rule.pointer, amounts: rule.amounts } };
    case 'quote':
      return { quote: { min: rule.min, max: rule.max } };
  }
}

/** The price for a reader, with those in other entries that differ; `free` for no price. */
export function priceInWords(pricing: Pricing): string {
  if (pricing.type === 'free') return 'free';
  const { currency, by } = pricing;
  return by === undefined ? priceText(pricesOf(pricing)) : ruleInWords(listedRule(by), currency);
}

/** Such as `0.01 USDC for each item of /items, at least 0.01, at most 1`. */
function ruleInWords(by: ListedRule, currency: string): string {
  if ('unit' in by) {
    const { unit } = by;
    const each = `${unit.amount} ${currency} for each${NOUNS[unit.of]} of ${unit.pointer}`;
    return `${each}, at least ${unit.min}, at most ${unit.max}`;
  }
  if ('quote' in by) return `${by.quote.min} to ${by.quote.max} ${currency}, quoted for each input`;
  if ('tier' in by) {
    const { pointer, of, steps } = by.tier;
    const noun = of === 'number' ? '' : `${NOUNS[of]}s`;
    return `by ${pointer}: ${steps.map((step) => `${step.amount} ${currency} up to ${step.upTo}${noun}`).join(', ')}`;
  }
  const { pointer, amounts } = by.choice;
  const prices = Object.entries(amounts).map(([value, price]) => `${price} ${currency} for ${value}`);
  return `by ${pointer}: ${prices.join(', ')}`;
}

const NOUNS: Readonly<Record<Measure, string>> = { number: '', text: ' character', list: ' item' };

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
  const perCall = pricing.type === 'fixed' && pricing.by === undefined ? ' per call' : '';
  const price = pricing.type === 'free' ? '' : ` Costs ${listedPriceText(pricing)}${perCall}${pay}.`;
  return `${sentence}${price}${mandate}`;
}

/** The price for a reader, with the alternatives that differ from it. */
function listedPriceText(pricing: Extract<ListedPricing, { type: 'fixed' }>): string {
  const { currency, alternatives = [], by } = pricing;
  return by === undefined ? priceText([pricing, ...alternatives]) : ruleInWords(by, currency);
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
