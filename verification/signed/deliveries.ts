/**
 * Deliveries over every channel whose receipt and statement are verified, by the official package
 * and by our own verifier, against the published key and the bytes that came.
 */

import { generateKeyPairSync } from 'node:crypto';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { verifyReceiptSignatureJWS } from '@x402/extensions/offer-receipt';
import { message, postA2a, sendMessage } from '../../spec/adapters/a2a/post.ts';
import { callTool } from '../../spec/adapters/mcp/post.ts';
import { CURRENCY } from '../../spec/support/config.ts';
import { inPlaceRequest, soldInPlace } from '../../spec/support/in-place.ts';
import { openTestbed, type Testbed } from '../../spec/support/testbed.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { inputDigest } from '../../src/payments/settlement/terms.ts';
import { checkTogether, readKept } from '../../tools/verify-receipt/documents.ts';
import { checkAnswer, type FindKey, keysOfDid, keysOfSet, readSigned } from '../../tools/verify-receipt/signed.ts';

/** `purchase`: over HTTP, with the statement of /api/purchases. `replay`: delivered once more. */
export const CHANNELS = ['purchase', 'trailer', 'in place', 'replay', 'mcp', 'a2a'] as const;
type Channel = (typeof CHANNELS)[number];

/** Deliveries that run at a time. */
const AT_ONCE = 8;

/** What a buyer has of one delivery. */
export interface Delivered {
  readonly input: JsonObject;
  /** The answer's bytes. */
  readonly bytes: Buffer;
  /** The PAYMENT-RESPONSE document. */
  readonly payment: JsonObject;
  readonly receipt: string;
  readonly statement: string;
}

export interface SignedShop extends Testbed {
  /** What the gateway publishes. */
  readonly did: JsonObject;
  readonly jwks: { readonly keys: readonly JsonObject[] };
}

/** A gateway that signs and sells over every channel. `payTo`: by default without a key. */
export async function openSignedShop(changes: JsonObject = {}, payTo?: string): Promise<SignedShop> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signing = { key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })), ...changes };
  const protocols = { mcp: { enabled: true }, a2a: { enabled: true } };
  const overrides = { signing, protocols, resources: soldInPlace(CURRENCY) };
  const testbed = await openTestbed({ overrides, ...(payTo === undefined ? {} : { payTo }) });
  const read = async <Document>(path: string) =>
    (await (await fetch(`${testbed.gateway.url}${path}`)).json()) as Document;
  return {
    ...testbed,
    did: await read('/.well-known/did.json'),
    jwks: await read('/.well-known/jwks.json'),
  };
}

/** Buys once over a channel. */
export async function deliverOver(channel: Channel, shop: SignedShop, number: number): Promise<Delivered> {
  const input = { city: `Town ${number}` };
  const proof = await shop.proof('market_report', input);
  switch (channel) {
    case 'mcp':
      return overMcp(shop, input, proof);
    case 'a2a':
      return overA2a(shop, input, proof);
    case 'purchase':
      return collected(shop, input, proof);
    case 'in place':
      return overHttp(shop, input, proof, inPlaceRequest('market_report', input));
    case 'trailer':
      return overHttp(shop, input, proof);
    case 'replay': {
      const first = await overHttp(shop, input, proof);
      await purchaseOf(shop, first.payment, proof);
      return overHttp(shop, input, proof);
    }
  }
}

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly body: string | undefined;
}

/** A call whose caller takes trailers. */
export async function overHttp(
  { gateway }: Pick<SignedShop, 'gateway'>,
  input: JsonObject,
  proof: string,
  sent: Sent = { method: 'POST', target: '/api/resources/market_report/invoke', body: JSON.stringify(input) },
): Promise<Delivered> {
  const { method, target, body } = sent;
  const headers = {
    'payment-signature': proof,
    te: 'trailers',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  http.request(`${gateway.url}${target}`, { method, headers, agent: false }, resolve).on('error', reject).end(body);
  const answer = await promise;
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${bytes.toString()}`);
  const statement = answer.trailers['agent-commerce-delivery'];
  if (statement === undefined) throw new Error('there is no statement behind the answer');
  const payment = decoded(answer.headers['payment-response']);
  return { input, bytes, payment, receipt: receiptOf(payment), statement };
}

/** A call over HTTP without trailers; the statement is asked for. */
async function collected(shop: SignedShop, input: JsonObject, proof: string): Promise<Delivered> {
  const answer = await shop.gateway.invoke('market_report', input, { 'payment-signature': proof });
  const bytes = Buffer.from(await answer.arrayBuffer());
  const payment = decoded(answer.headers.get('payment-response'));
  const purchase = await purchaseOf(shop, payment, proof);
  return { input, bytes, payment, receipt: receiptOf(payment), statement: String(purchase['statement']) };
}

/** What the gateway says of a purchase once its delivery is written. */
export async function purchaseOf(
  { gateway }: Pick<SignedShop, 'gateway'>,
  { receiptId }: JsonObject,
  proof: string,
): Promise<JsonObject> {
  for (;;) {
    const answer = await fetch(`${gateway.url}/api/purchases/${String(receiptId)}`, {
      headers: { 'payment-signature': proof },
    });
    const purchase = (await answer.json()) as JsonObject;
    if (answer.status !== 200) throw new Error(JSON.stringify(purchase));
    if (purchase['state'] === 'delivered') return purchase;
    await delay(5);
  }
}

async function overMcp({ gateway }: SignedShop, input: JsonObject, proof: string): Promise<Delivered> {
  const { content, _meta } = await callTool(gateway.url, 'market_report', { ...input, _payment: proof });
  const meta = _meta as unknown as JsonObject;
  const payment = meta['x402/payment-response'] as JsonObject;
  const statement = String(meta['agent-commerce/deliveryStatement']);
  return { input, bytes: Buffer.from(content[0]?.text ?? ''), payment, receipt: receiptOf(payment), statement };
}

const BEFORE_DATA = '"parts":[{"data":';
const BEHIND_DATA = ',"mediaType":"application/json"}]';

/** The answer stands in the message as the merchant wrote it. */
async function overA2a({ gateway }: SignedShop, input: JsonObject, proof: string): Promise<Delivered> {
  const { text } = await postA2a(gateway.url, sendMessage(message('market_report', { ...input, _payment: proof })));
  const { result } = JSON.parse(text) as {
    readonly result: { readonly task: { readonly artifacts: readonly [{ metadata: JsonObject }] } };
  };
  const [{ metadata }] = result.task.artifacts;
  const payment = metadata['x402/payment-response'] as JsonObject;
  const at = text.lastIndexOf(BEFORE_DATA) + BEFORE_DATA.length;
  const bytes = Buffer.from(text.slice(at, text.indexOf(BEHIND_DATA, at)));
  const statement = String(metadata['agent-commerce/deliveryStatement']);
  return { input, bytes, payment, receipt: receiptOf(payment), statement };
}

function decoded(header: string | string[] | null | undefined): JsonObject {
  if (typeof header !== 'string') throw new Error('there is no PAYMENT-RESPONSE');
  return JSON.parse(Buffer.from(header, 'base64').toString()) as JsonObject;
}

function receiptOf({ extensions }: JsonObject): string {
  const { 'offer-receipt': extension } = extensions as unknown as {
    readonly 'offer-receipt': { readonly info: { readonly receipt: { readonly signature: string } } };
  };
  return extension.info.receipt.signature;
}

/** @throws what either verifier finds */
export async function verifyDelivered(
  { jwks }: Pick<SignedShop, 'jwks'>,
  findKeys: readonly FindKey[],
  { input, bytes, payment, receipt, statement }: Delivered,
): Promise<void> {
  const [publicJwk] = jwks.keys;
  const official = await verifyReceiptSignatureJWS({ format: 'jws', signature: receipt }, publicJwk as never);
  for (const name of ['transaction', 'network', 'payer'] as const)
    if (official[name] !== payment[name]) throw new Error(`the receipt has another ${name}`);
  for (const findKey of findKeys) {
    const signed = [readSigned(receipt, findKey), readSigned(statement, findKey)];
    checkTogether(signed, readKept(JSON.stringify(payment)));
    const [, stated] = signed;
    if (stated?.kind !== 'statement' || !stated.verified) throw new Error('it is no statement');
    checkAnswer(stated, bytes);
    if (stated.payload['input'] !== inputDigest(input)) throw new Error('the statement is about another input');
  }
}

/** What a run came to. */
export interface DeliveriesRun {
  readonly verified: Readonly<Record<Channel, number>>;
  /** What must be empty. */
  readonly violations: readonly string[];
}

/** @param deliveries how many, over the channels by turns */
export async function runDeliveries(deliveries: number): Promise<DeliveriesRun> {
  const shop = await openSignedShop();
  try {
    // The dearest resource is sold each time.
    await shop.chain.mint(shop.buyer.address, BigInt(deliveries) * 20_000n);
    const verified = Object.fromEntries(CHANNELS.map((channel) => [channel, 0])) as Record<Channel, number>;
    const violations: string[] = [];
    const findKeys = [keysOfDid(shop.did), keysOfSet(shop.jwks as unknown as JsonObject)];
    let next = 0;
    const work = async (): Promise<void> => {
      for (let number = next++; number < deliveries; number = next++) {
        const channel = CHANNELS[number % CHANNELS.length] ?? 'trailer';
        try {
          await verifyDelivered(shop, findKeys, await deliverOver(channel, shop, number));
          verified[channel] += 1;
        } catch (fault) {
          violations.push(`${channel} ${number}: ${String(fault)}`);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return { verified, violations };
  } finally {
    await shop.close();
  }
}
