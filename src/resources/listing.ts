import type { JsonObject } from '../json/types.ts';
import type { Pricing } from '../payments/pricing/price.ts';
import type { ResourceConfig } from './settings.ts';

/** A resource as GET /api/resources shows it (interface specification, part 2). No backend URL, path or header. */
export interface ListedResource {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly method: string;
  readonly pricing:
    | { readonly type: 'free' }
    | { readonly type: 'fixed'; readonly amount: string; readonly currency: string };
  readonly exposedVia: readonly string[];
  readonly paymentMethods: readonly string[];
  /** Absent where nothing but money is needed. */
  readonly authorization?: { readonly required: readonly string[] };
}

/** Built field by field, never by spreading configuration. `inputSchema`: the closed form that is enforced. */
export function listedResource(resource: ResourceConfig, inputSchema: JsonObject): ListedResource {
  return {
    id: resource.id,
    name: resource.name,
    ...(resource.description === undefined ? {} : { description: resource.description }),
    inputSchema,
    ...(resource.outputSchema === undefined ? {} : { outputSchema: resource.outputSchema }),
    method: resource.backend.method,
    pricing: listedPricing(resource.pricing),
    exposedVia: resource.exposedVia,
    paymentMethods: resource.paymentMethods,
    ...(resource.authorization.length === 0 ? {} : { authorization: { required: resource.authorization } }),
  };
}

function listedPricing(pricing: Pricing): ListedResource['pricing'] {
  if (pricing.type === 'free') return { type: 'free' };
  return { type: 'fixed', amount: pricing.amount, currency: pricing.currency };
}
