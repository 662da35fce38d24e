/** Resources as MCP tools: the pages of `tools/list`, and the result of `server/discover`. */

import { createHash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import {
  asksForMandate,
  describedWithPrice,
  type ListedPricing,
  type ListedResource,
} from '../../resources/listing.ts';
import { AUTHORIZATION_MEMBER, PAYMENT_MEMBER, sameValue } from '../../resources/schemas/keywords.ts';
import { type Era, META_SERVER_INFO } from './parse-request.ts';

/** How long a client may keep the list, milliseconds. Resources change only at a restart. */
const LIST_TTL_MS = 300_000;
/** How long a client may keep the result of `server/discover`, milliseconds. */
const DISCOVER_TTL_MS = 3_600_000;

/** Currencies worth a US dollar: for these a client shows the price with its tool. */
const USD_COINS: ReadonlySet<string> = new Set(['USD', 'USDC', 'USDT', 'PYUSD']);

/** Few words: a model reads them for each tool, and the instructions of the server say the rest. */
const ADVICE = { pay: ' (x402)', authorize: '' } as const;
const PAYMENT_ARGUMENT = { type: 'string', description: 'x402 payment (base64), once asked for' } as const;
const MANDATE_ARGUMENT = { type: 'string', description: 'AP2 mandate (base64url), once asked for' } as const;

/** `serverInfo`: the gateway, under the merchant's name. */
export interface ServerInfo {
  readonly name: string;
  readonly title: string;
  readonly version: string;
}

/** One page of `tools/list` as JSON text. `nextCursor`: undefined on the last page. */
function toolsListResult(
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
  const annotations = annotationsOf(resource);
  return {
    name: id,
    title: name,
    description: describedWithPrice(resource, ADVICE),
    inputSchema: withReserved(inputSchema, { ...(paid ? PAYMENT : {}), ...(asksForMandate(resource) ? MANDATE : {}) }),
    ...(era === 'legacy' || outputSchema === undefined ? {} : { outputSchema }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(paid ? { _meta: dollarPrice(pricing) } : {}),
  };
}

const PAYMENT: JsonObject = { [PAYMENT_MEMBER]: PAYMENT_ARGUMENT };
const MANDATE: JsonObject = { [AUTHORIZATION_MEMBER]: MANDATE_ARGUMENT };

/**
 * Declares the reserved members, never as required: schemas are closed and hosts validate before
 * they send. Rules about all properties are widened for them. Where a part of the schema is closed
 * on its own the members could not pass, so they are left out: clients use `_meta`.
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

/**
 * Hints that differ from what MCP assumes without them: not read-only, destructive, not idempotent.
 * A paid tool is never read-only: it moves money, and hosts call read-only tools without asking.
 */
function annotationsOf({ method, pricing }: ListedResource): JsonObject {
  const free = pricing.type === 'free';
  if (free && method === 'GET') return { readOnlyHint: true };
  return {
    ...(method === 'DELETE' ? {} : { destructiveHint: false }),
    ...(free && method === 'PUT' ? { idempotentHint: true } : {}),
  };
}

/** Members that the client of Cloudflare's agents reads, without a price that follows the input. */
function dollarPrice({ amount, currency, by }: Extract<ListedPricing, { type: 'fixed' }>): JsonObject {
  return {
    'agents-x402/paymentRequired': true,
    ...(by === undefined && USD_COINS.has(currency) ? { 'agents-x402/priceUSD': amount } : {}),
  };
}

/** A page has at most so many tools: clients that read one page only see all of most merchants. */
const MOST_TOOLS = 500;
/** Longest text of a page's resources, characters: a page is then made in a few milliseconds. */
const MOST_CHARACTERS = 524_288;
/** Characters of the digest in a cursor: it tells lists apart, and keeps no secret. */
const TAG_LENGTH = 12;

interface ToolPages {
  /** The JSON text of a result; undefined for a cursor that leads to no page of this list. */
  at(cursor: Json | undefined): Buffer | undefined;
}

/**
 * The pages of one list in every era. The first page is made at start, each other one when it is
 * first asked for. A cursor names the place of its page and the list, so that every process with
 * the same tools understands it, and no page of another list follows.
 */
export function toolPages(resources: readonly ListedResource[], server: ServerInfo): Readonly<Record<Era, ToolPages>> {
  const starts = pageStarts(resources);
  const tag = starts.length > 1 ? tagOf(resources) : '';
  const cursors = starts.map((start) => `${start}-${tag}`);
  const inEra = (era: Era): ToolPages =>
    pagesOf(cursors, (at) => {
      const some = resources.slice(starts[at], starts[at + 1]);
      return toolsListResult(some, era, server, cursors[at + 1]);
    });
  return { legacy: inEra('legacy'), modern: inEra('modern') };
}

function pagesOf(cursors: readonly string[], textOf: (at: number) => string): ToolPages {
  const made: Buffer[] = [];
  const page = (at: number): Buffer => {
    made[at] ??= Buffer.from(textOf(at));
    return made[at];
  };
  page(0);
  return {
    at(cursor) {
      if (cursor === undefined) return page(0);
      // The first page has no cursor: a client begins without one.
      const at = typeof cursor === 'string' ? cursors.indexOf(cursor) : -1;
      return at < 1 ? undefined : page(at);
    },
  };
}

/** The index of each page's first resource; a list without any is one page. */
function pageStarts(resources: readonly ListedResource[]): readonly number[] {
  const starts = [0];
  let characters = 0;
  for (const [index, resource] of resources.entries()) {
    const { length } = JSON.stringify(resource);
    const start = starts.at(-1) ?? 0;
    if (index > start && (index - start === MOST_TOOLS || characters + length > MOST_CHARACTERS)) {
      starts.push(index);
      characters = 0;
    }
    characters += length;
  }
  return starts;
}

function tagOf(resources: readonly ListedResource[]): string {
  const hash = createHash('sha256');
  for (const { id } of resources) hash.update(`${id}\n`);
  return hash.digest('base64url').slice(0, TAG_LENGTH);
}
