/** Resources as MCP tools: the results of `tools/list` and `server/discover`. */

import { isObject, type Json, type JsonObject } from '../../json/types.ts';
import { asksForMandate, describedWithPrice, type ListedResource } from '../../resources/listing.ts';
import { sameValue } from '../../resources/schemas/keywords.ts';
import { AUTHORIZATION_MEMBER, PAYMENT_MEMBER } from '../../resources/schemas/reserved-members.ts';
import { type Era, META_SERVER_INFO } from './eras.ts';

/** How long a client may keep the list, milliseconds. Resources change only at a restart. */
const LIST_TTL_MS = 300_000;
/** How long a client may keep the result of `server/discover`, milliseconds. */
const DISCOVER_TTL_MS = 3_600_000;

/** Currencies worth a US dollar: for these a client shows the price with its tool. */
const USD_COINS: ReadonlySet<string> = new Set(['USD', 'USDC', 'USDT', 'PYUSD']);

const HOW_TO_PAY = ', paid with x402: call it without payment and the answer says how';

const PAYMENT_ARGUMENT = {
  type: 'string',
  description: 'x402 payment proof (base64). Leave it out: the answer then says what to pay, and how.',
} as const;

const MANDATE_ARGUMENT = {
  type: 'string',
  description: 'AP2 mandate (base64url). Leave it out: the answer then says which checkout to make it for.',
} as const;

/** `serverInfo`: the gateway, under the merchant's name. */
export interface ServerInfo {
  readonly name: string;
  readonly title: string;
  readonly version: string;
}

/** One page of `tools/list` as JSON text. `nextCursor`: undefined on the last page. */
export function toolsListResult(
  resources: readonly ListedResource[],
  era: Era,
  server: ServerInfo,
  nextCursor?: string,
): string {
  const tools = resources.map((resource) => toolOf(resource, era));
  const more = nextCursor === undefined ? {} : { nextCursor };
  if (era === 'legacy') return JSON.stringify({ tools, ...more });
  return JSON.stringify({
    resultType: 'complete',
    tools,
    ...more,
    ttlMs: LIST_TTL_MS,
    cacheScope: 'public',
    _meta: { [META_SERVER_INFO]: server },
  });
}

/** The result of `server/discover` as JSON text. */
export function discoverResult(versions: readonly string[], instructions: string, server: ServerInfo): string {
  return JSON.stringify({
    resultType: 'complete',
    supportedVersions: versions,
    capabilities: { tools: {} },
    instructions,
    ttlMs: DISCOVER_TTL_MS,
    cacheScope: 'public',
    _meta: { [META_SERVER_INFO]: server },
  });
}

/**
 * A resource as a tool. Legacy clients get no output schema: one whose root is not an object makes
 * their whole list fail, and the older SDK validates even a challenge with it.
 */
function toolOf(resource: ListedResource, era: Era): JsonObject {
  const { id, name, pricing, inputSchema, outputSchema } = resource;
  const paid = pricing.type === 'fixed';
  return {
    name: id,
    title: name,
    description: describedWithPrice(resource, HOW_TO_PAY),
    inputSchema: withReserved(inputSchema, { ...(paid ? PAYMENT : {}), ...(asksForMandate(resource) ? MANDATE : {}) }),
    ...(era === 'legacy' || outputSchema === undefined ? {} : { outputSchema }),
    annotations: annotationsOf(resource),
    _meta: {
      'agent-commerce/pricing': pricing,
      ...(paid ? dollarPrice(pricing) : {}),
      ...(resource.authorization === undefined
        ? {}
        : { 'agent-commerce/authorization': { required: [...resource.authorization.required] } }),
    },
  };
}

const PAYMENT: JsonObject = { [PAYMENT_MEMBER]: PAYMENT_ARGUMENT };
const MANDATE: JsonObject = { [AUTHORIZATION_MEMBER]: MANDATE_ARGUMENT };

/**
 * Declares the reserved members, never as required: schemas are closed and hosts validate before
 * they send. Rules about all properties are widened for them. Where a part of the schema is closed
 * on its own the members could not pass, so they are left out, and `_meta` remains.
 */
function withReserved(schema: JsonObject, reserved: JsonObject): JsonObject {
  const names = Object.keys(reserved);
  if (names.length === 0) return schema;
  const [, ...parts] = sameValue(schema, schema);
  if (parts.some((part) => part['additionalProperties'] === false || part['unevaluatedProperties'] === false))
    return schema;
  const { maxProperties, propertyNames } = schema;
  const properties: Json = isObject(schema['properties']) ? schema['properties'] : {};
  return {
    ...schema,
    properties: { ...properties, ...reserved },
    ...(typeof maxProperties === 'number' ? { maxProperties: maxProperties + names.length } : {}),
    ...(propertyNames === undefined
      ? {}
      : { propertyNames: { anyOf: [propertyNames, ...names.map((name) => ({ const: name }))] } }),
  };
}

/** A paid tool is never read-only: it moves money, and hosts call such tools without asking. */
function annotationsOf({ name, method, pricing }: ListedResource): JsonObject {
  const destructiveHint = method === 'DELETE';
  if (pricing.type === 'fixed')
    return { title: name, readOnlyHint: false, destructiveHint, idempotentHint: false, openWorldHint: true };
  const readOnlyHint = method === 'GET';
  return {
    title: name,
    readOnlyHint,
    ...(readOnlyHint ? {} : { destructiveHint }),
    idempotentHint: readOnlyHint || method === 'PUT',
    openWorldHint: true,
  };
}

/** Members that the client of Cloudflare's agents reads. */
function dollarPrice({ amount, currency }: { readonly amount: string; readonly currency: string }): JsonObject {
  return {
    'agents-x402/paymentRequired': true,
    ...(USD_COINS.has(currency) ? { 'agents-x402/priceUSD': amount } : {}),
  };
}
