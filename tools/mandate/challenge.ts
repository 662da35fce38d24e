/** Reads the challenge that a mandate is made for, from an answer of the gateway. */

import { isObject, type Json, type JsonObject } from '../../src/json/json.ts';
import { named, readJson } from './files.ts';
import type { Item, Merchant } from './maker/constraints.ts';
import { hashOf } from './maker/tokens.ts';

/** What a challenge demands (ap2 7.4), and what its checkout is for. */
export interface ReadChallenge {
  readonly audience: string;
  readonly nonce: string;
  readonly checkoutJwt: string;
  readonly paymentMandate: 'optional' | 'required' | 'none';
  readonly bindPaymentNonce: boolean;
  readonly maxEnvelopeBytes: number | undefined;
  readonly merchant: Merchant;
  readonly items: readonly (Item & { readonly quantity: number })[];
  readonly currency: string;
  /** Minor units. */
  readonly total: number;
  /** Display units, as text. */
  readonly amount: string;
  /** CAIP-2; undefined for what costs nothing. */
  readonly network: string | undefined;
}

/**
 * Reads the body of a 402 or 403, its `authorization` or one entry of that, from a file or standard
 * input, however deep in a message of MCP or A2A.
 * @throws Error that names what is missing, or states that the checkout has ended
 */
export function readChallenge(file: string, nowSeconds: number): ReadChallenge {
  const entry = find(readJson(file));
  if (entry === undefined)
    throw new Error(
      `${named(file)} holds no challenge for a mandate: no authorization.required with method ap2. Is it the body of a 402 or 403 of a resource that requires ap2?`,
    );
  const checkoutJwt = textOf(entry, 'checkoutJwt', 'the challenge');
  const nonce = textOf(entry, 'nonce', 'the challenge');
  const claims = claimsOf(checkoutJwt);
  if (hashOf(checkoutJwt) !== entry['checkoutHash'])
    throw new Error('checkoutHash is not the hash of checkoutJwt: the challenge was changed on its way');
  if (claims['jti'] !== nonce)
    throw new Error('nonce is not the jti of the checkout: the challenge was changed on its way');
  const ends = numberOf(claims, 'exp');
  if (ends <= nowSeconds)
    throw new Error(
      `the checkout ended at ${new Date(ends * 1_000).toISOString()}, ${nowSeconds - ends} seconds ago: call the resource again for a fresh one`,
    );
  const terms = memberOf(claims, 'agent_commerce');
  const { paymentMandate, bindPaymentNonce, maxEnvelopeBytes } = entry;
  return {
    audience: textOf(entry, 'audience', 'the challenge'),
    nonce,
    checkoutJwt,
    paymentMandate: paymentMandate === 'required' || paymentMandate === 'none' ? paymentMandate : 'optional',
    bindPaymentNonce: bindPaymentNonce === true,
    maxEnvelopeBytes: typeof maxEnvelopeBytes === 'number' ? maxEnvelopeBytes : undefined,
    merchant: merchantOf(memberOf(claims, 'merchant')),
    items: itemsOf(claims['line_items']),
    currency: textOf(claims, 'currency', 'the checkout'),
    total: totalOf(claims['totals']),
    amount: textOf(terms, 'amount', 'the checkout'),
    network: typeof terms['network'] === 'string' ? terms['network'] : undefined,
  };
}

/** The first entry for AP2, at any depth. */
function find(value: Json | undefined): JsonObject | undefined {
  if (Array.isArray(value)) return first(value);
  if (!isObject(value)) return undefined;
  if (value['method'] === 'ap2' && value['checkoutJwt'] !== undefined) return value;
  return first(Object.values(value));
}

function first(values: readonly Json[]): JsonObject | undefined {
  for (const value of values) {
    const found = find(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

function claimsOf(jwt: string): JsonObject {
  try {
    const claims = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) as Json;
    if (isObject(claims)) return claims;
  } catch {
    // The same error as for JSON that is no object.
  }
  throw new Error('checkoutJwt is no JWT that can be read');
}

function itemsOf(lines: Json | undefined): ReadChallenge['items'] {
  return (Array.isArray(lines) ? lines : []).map((line: Json) => {
    if (!isObject(line)) throw new Error('the checkout has a line item that is no object');
    const item = memberOf(line, 'item');
    const [id, title] = [textOf(item, 'id', 'an item'), textOf(item, 'title', 'an item')];
    return { id, title, quantity: numberOf(line, 'quantity') };
  });
}

function totalOf(totals: Json | undefined): number {
  const total = (Array.isArray(totals) ? totals : []).find((one: Json) => isObject(one) && one['type'] === 'total') as
    | JsonObject
    | undefined;
  if (total === undefined) throw new Error('the checkout has no total');
  return numberOf(total, 'amount');
}

function merchantOf(merchant: JsonObject): Merchant {
  const { website } = merchant;
  const [id, name] = [textOf(merchant, 'id', 'the merchant'), textOf(merchant, 'name', 'the merchant')];
  return { id, name, ...(typeof website === 'string' ? { website } : {}) };
}

function memberOf(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  if (isObject(value)) return value;
  throw new Error(`the checkout has no ${name}`);
}

function textOf(object: JsonObject, name: string, where: string): string {
  const value = object[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new Error(`${where} has no ${name}`);
}

function numberOf(object: JsonObject, name: string): number {
  const value = object[name];
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  throw new Error(`the checkout has no ${name} that is a whole number`);
}
