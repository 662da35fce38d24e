/** `resources`: what is sold, by which adapters, at which price and under which mandate. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { Channel } from '../../events/event.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import { resourceFaults } from '../../resources/check.ts';
import type { ResourceConfig } from '../../resources/settings.ts';
import { comparisonFault, templateParameters } from '../../resources/url-template.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { ResourceDocument } from '../document/document.ts';
import type { MandateSetting } from './ap2.ts';
import { type BackendBase, lowerHeaders } from './backend.ts';
import { derivePricing, type PriceAsset } from './pricing.ts';

const RESOURCE = schema.$defs.resource.properties;
const BACKEND = RESOURCE.backend.properties;

/** Milliseconds and bytes of a resource that sets none. */
export const USUAL_LIMITS = {
  timeoutMs: BACKEND.timeoutMs.default,
  maxResponseBytes: BACKEND.maxResponseBytes.default,
} as const;

/** Never relayed: it would make agents pay again. */
const PAYMENT_REQUIRED_STATUS = 402;
/** Allowed by the grammar, but a URL parser removes them as path segments. */
const DOT_SEGMENTS: ReadonlySet<string> = new Set(['.', '..']);

/** Other sections that a resource is derived from. */
export interface ResourceSurroundings {
  /** Without a trailing slash. */
  readonly publicBaseUrl: string;
  /** Whether what is not sold passes to the backend. */
  readonly passes: boolean;
  readonly backend: BackendBase;
  /** Undefined when that section was refused: the mounts are then unknown. */
  readonly protocols: GatewayConfig['protocols'] | undefined;
  readonly asset: PriceAsset;
  readonly mandates: MandateSetting;
}

/** One resource; undefined when its price could not be derived (a problem was added). */
export function deriveResource(
  id: string,
  document: ResourceDocument,
  { publicBaseUrl, passes, backend, protocols, asset, mandates }: ResourceSurroundings,
  problems: ProblemList,
): ResourceConfig | undefined {
  const path = memberPath('resources', id);
  if (DOT_SEGMENTS.has(id)) problems.add(path, 'must not be named . or ..');
  const pricing = derivePricing(document.pricing, asset, path, problems);
  const free = document.pricing.type === 'free';
  const resource: ResourceConfig = {
    id,
    name: document.name,
    description: document.description,
    inputSchema: document.inputSchema,
    outputSchema: document.outputSchema,
    mimeType: document.mimeType ?? RESOURCE.mimeType.default,
    backend: deriveOperation(document.backend, free, backend, path, problems),
    pricing: pricing ?? { type: 'free' },
    exposedVia: mounted(document.expose ?? ['http'], protocols, path, problems),
    paymentMethods: paymentMethods(document.payments, free, path, problems),
    authorization: requiredMandates(document, mandates, path, problems),
    address:
      document.expose?.includes('origin') === true
        ? publicBaseUrl + document.backend.path.replace(/\?.*/, '')
        : undefined,
    bazaar: document.bazaar,
  };
  for (const fault of resourceFaults(resource)) problems.add(`${path}.${fault.path}`, fault.message);
  const guarded = !free || resource.authorization.length > 0;
  const unguardable =
    passes && guarded && resource.address === undefined ? comparisonFault(document.backend.path) : undefined;
  if (unguardable !== undefined)
    problems.add(`${path}.backend.path`, `cannot be kept from passing to the backend: it ${unguardable}`);
  return pricing && resource;
}

function deriveOperation(
  operation: ResourceDocument['backend'],
  free: boolean,
  backend: BackendBase,
  path: string,
  problems: ProblemList,
): ResourceConfig['backend'] {
  const relayStatuses = operation.relayStatuses ?? [];
  if (relayStatuses.includes(PAYMENT_REQUIRED_STATUS))
    problems.add(`${path}.backend.relayStatuses`, 'must not have 402: agents would pay for it');
  if (relayStatuses.length > 0 && !free)
    problems.add(`${path}.backend.relayStatuses`, 'is for free resources only; remove it');
  const bindings = operation.inputBindings;
  return {
    method: operation.method,
    path: backend.pathPrefix + operation.path,
    headers: { ...backend.headers, ...lowerHeaders(operation.headers ?? {}, `${path}.backend.headers`, problems) },
    inputBindings: bindings && {
      path: bindings.path ?? templateParameters(operation.path),
      query: bindings.query ?? [],
      body: bindings.body ?? [],
      styles: new Map(Object.entries(bindings.styles ?? {})),
    },
    contentType: operation.contentType ?? BACKEND.contentType.default,
    timeoutMs: operation.timeoutMs ?? BACKEND.timeoutMs.default,
    maxResponseBytes: operation.maxResponseBytes ?? BACKEND.maxResponseBytes.default,
    idempotent: operation.idempotent ?? BACKEND.idempotent.default,
    relayStatuses,
    strictQuery: operation.strictQuery ?? BACKEND.strictQuery.default,
  };
}

/**
 * The enabled adapters that offer it, and its own address, which needs none. A resource that
 * nothing offers is a mistake.
 */
function mounted(
  expose: readonly Channel[],
  protocols: GatewayConfig['protocols'] | undefined,
  path: string,
  problems: ProblemList,
): readonly Channel[] {
  if (protocols === undefined) return expose;
  const channels = expose.filter((channel) => channel === 'origin' || protocols[channel].enabled);
  if (channels.length === 0)
    problems.add(
      `${path}.expose`,
      `must name at least one adapter that is enabled; set protocols.${expose[0]}.enabled: true, or name another one`,
    );
  return channels;
}

function paymentMethods(
  configured: readonly 'x402'[] | undefined,
  free: boolean,
  path: string,
  problems: ProblemList,
): readonly 'x402'[] {
  const methods = configured ?? (free ? [] : ['x402']);
  if (free && methods.length > 0) problems.add(`${path}.payments`, 'must be empty for a free resource');
  if (!free && methods.length === 0) problems.add(`${path}.payments`, 'must have x402 for a resource with a price');
  return methods;
}

/**
 * The mandates that a resource requires. Requiring mandates that none can be trusted for would sell
 * what cannot be bought.
 */
function requiredMandates(
  document: Pick<ResourceDocument, 'authorization' | 'pricing'>,
  mandates: MandateSetting,
  path: string,
  problems: ProblemList,
): readonly 'ap2'[] {
  const required = document.authorization?.required ?? [];
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
  if (pricing.type === 'fixed') checkPrice(pricing, mandates.exponents, `${path}.pricing.amount`, problems);
  return required;
}

/** AP2 counts in minor units, which JSON must hold exactly (ap2 7.3). */
function checkPrice(
  { amount, currency }: { readonly amount: string; readonly currency: string },
  exponents: ReadonlyMap<string, number>,
  path: string,
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
