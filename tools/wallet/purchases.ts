/** Finds, prices and buys resources of gateways for an assistant, within the limits of its user. */

import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { decodePaymentSignatureHeader } from '@x402/core/http';
import { bodyText, httpGet } from '../../src/cli/http-get.ts';
import { hostKind, readHttpUrl } from '../../src/config/document/endpoints.ts';
import { canonicalJson, type JsonObject } from '../../src/json/json.ts';
import {
  bodyOf,
  type Challenge,
  type Channel,
  jsonOf,
  members,
  type Reply,
  type SignedPayment,
} from '../pay/channel.ts';
import { keepPayment, keptPayment } from '../pay/kept-payment.ts';
import {
  inUnits,
  type KnownToken,
  networkName,
  type Offer,
  offered,
  paidIn,
  payableOffer,
  plain,
  priceOf,
} from '../pay/offer.ts';
import { ask, outcomeLines, sendUntilAnswered, unpaidLine } from '../pay/send.ts';
import { openChannel } from '../pay/target.ts';
import type { Wallet } from '../pay/wallet.ts';

/** Longest list of resources, bytes. */
const MAX_LIST_BYTES = 4_194_304;
/** From the first to the last time that a payment is sent in one call; MCP hosts wait for 60 s. */
const PATIENCE_MS = 30_000;
const ISO_TIME = /^\d{4}-\d\d-\d\dT[\d:.]{5,20}Z$/;
/** States of a 409 in which the same payment may still collect. */
const COLLECTABLE: ReadonlySet<unknown> = new Set(['in_flight', 'undelivered']);

/** The bounds of a wallet. */
export interface Policy {
  /** Hosts that may be asked and paid, as URLs have them. */
  readonly hosts: readonly string[];
  /** CAIP-2. */
  readonly network: string;
  /** The one token that is paid with. */
  readonly token: KnownToken;
  /** The largest price, and the largest sum of all signed payments, base units. */
  readonly maxEach: bigint | undefined;
  readonly maxTotal: bigint | undefined;
  readonly wallet: Wallet;
  /** Payments with an open outcome are kept beside it. */
  readonly keyFile: string | undefined;
}

/** A call of a resource, as an assistant asks for it. */
export interface ResourceCall {
  readonly gateway: string;
  readonly resource: string;
  readonly input?: JsonObject;
}

/** The result of a tool, in words and as data. */
export interface Told {
  readonly words: string;
  readonly data: Record<string, unknown>;
  readonly isError: boolean;
}

/** A result, and whether a later call of the same purchase needs a payment of its own. */
interface Outcome {
  readonly told: Told;
  readonly isClosed: boolean;
}

/** All three throw Error, in words for the assistant, where nothing was signed. */
export interface Purchases {
  find(gateway: string): Promise<Told>;
  price(call: ResourceCall): Promise<Told>;
  /**
   * Signs at most one payment for a purchase until its outcome is known and `signal` lets the
   * assistant have it; meanwhile every call of the same purchase sends that payment.
   */
  buy(call: ResourceCall, signal: AbortSignal): Promise<Told>;
}

/** @param note takes a line for the user */
export function openPurchases(policy: Policy, note: (line: string) => void): Purchases {
  const { network, token, maxEach, maxTotal, wallet } = policy;
  const open = openPayments(policy.keyFile);
  const running = new Map<string, Promise<Outcome>>();
  /** All that was signed, base units: a seller can settle a payment also after it refused it. */
  let signed = 0n;
  const inWords = (units: bigint): string => `${inUnits(String(units), token.decimals)} ${token.symbol}`;

  /** Takes the amount from the total before it is signed. @throws Error that names the limit */
  function take(amount: bigint): void {
    const price = `the price is ${inWords(amount)}`;
    if (maxEach !== undefined && amount > maxEach)
      throw new Error(`${price}, more than --max-each ${inWords(maxEach)}: nothing was paid`);
    if (maxTotal !== undefined && signed + amount > maxTotal)
      throw new Error(
        `${price}, more than the ${inWords(maxTotal - signed)} left of --max-total ${inWords(maxTotal)}: nothing was paid`,
      );
    signed += amount;
  }

  function offerOf({ document, needsMandate }: Challenge): Offer {
    if (needsMandate) throw new Error('a mandate is needed as well, and this wallet has none: nothing was paid');
    const isPaid = (asset: unknown) => String(asset).toLowerCase() === token.address.toLowerCase();
    const accepts = document.accepts.filter((offer) => offer.network === network && isPaid(offer.asset));
    if (accepts.length > 0) return payableOffer({ accepts });
    throw new Error(
      `this wallet pays ${token.symbol} (${token.address}) on ${network} alone (--network), and nothing was paid: the price is in ${offered(document.accepts)}`,
    );
  }

  function termsOf({ requirements: { amount, payTo } }: Offer) {
    return { amount: inUnits(amount, token.decimals), currency: token.symbol, network, payTo };
  }

  async function purchase(id: string, { gateway, resource, input }: Required<ResourceCall>): Promise<Outcome> {
    const channel = await openChannel(gateway, JSON.stringify(input), { resource });
    const kept = open.find(id);
    if (kept !== undefined) return redeem(channel, kept);
    const asked = await ask(channel, gateway);
    if (asked.challenge === undefined) return { told: unpaid(asked), isClosed: true };
    const offer = offerOf(asked.challenge);
    const amount = BigInt(offer.requirements.amount);
    take(amount);
    let payment: SignedPayment;
    try {
      payment = await wallet.sign(asked.challenge, offer);
      open.keep(id, payment);
    } catch (error) {
      // A payment that never leaves moves nothing.
      signed -= amount;
      throw error;
    }
    return redeem(channel, payment);
  }

  async function redeem(channel: Channel, payment: SignedPayment): Promise<Outcome> {
    const { accepted, payload } = decodePaymentSignatureHeader(payment.proof);
    const offer = payableOffer({ accepts: [accepted] });
    const [price, terms] = [priceOf(offer), termsOf(offer)];
    const ends = new Date(1_000 * Number(members(payload['authorization'])['validBefore'])).toISOString();
    const { reply, why } = await sendUntilAnswered(channel, payment, PATIENCE_MS, note);
    const isPaid = reply?.settlement?.success === true;
    // A seller that took the money owes the answer, also where it says now that it wants a payment.
    const refused = isPaid ? undefined : reply?.challenge;
    const isClosed = reply !== undefined && (reply.ok || refused !== undefined || (!isPaid && isSpent(reply)));
    const lines =
      reply === undefined
        ? [`no answer to the payment of ${price}, which may have moved money: ${why}`]
        : refused === undefined
          ? outcomeLines(reply, paidIn(offer))
          : [`the signed payment of ${price} can still be taken until ${ends}, and the total of its process counts it`];
    const said = refused && [`the seller says that it took nothing: ${JSON.stringify(plain(refused.refusal ?? ''))}`];
    for (const line of [...lines, ...(said ?? [])]) note(line);
    const again = 'buy with the same input sends the same payment again, which moves no money twice';
    const left = maxTotal === undefined ? undefined : inUnits(String(maxTotal - signed), token.decimals);
    const words = [
      ...lines,
      ...(isClosed ? [] : [again]),
      ...(left === undefined ? [] : [`${left} ${token.symbol} left of --max-total`]),
      ...(said ?? []),
    ].join('\n');
    const { transaction, receiptId } = reply?.settlement ?? {};
    const data = { ...terms, transaction, receiptId, left, ...(reply && answerOf(reply)) };
    return { told: { words, data, isError: reply?.ok !== true }, isClosed };
  }

  return {
    async find(gateway) {
      const url = `${gatewayOf(gateway, policy.hosts)}/api/resources`;
      const response = await httpGet(url);
      const { resources } = members(jsonOf(await bodyText(url, response, MAX_LIST_BYTES)));
      if (response.statusCode !== 200 || !Array.isArray(resources))
        throw new Error(`${url} answers ${response.statusCode} and lists no resources`);
      return { words: `${resources.length} resources`, data: { resources }, isError: false };
    },
    async price({ gateway, resource, input = {} }) {
      const url = gatewayOf(gateway, policy.hosts);
      const asked = await ask(await openChannel(url, JSON.stringify(input), { resource }), url);
      if (asked.challenge === undefined) return unpaid(asked);
      const offer = offerOf(asked.challenge);
      const { expiresAt } = members(members(jsonOf(Buffer.from(asked.body).toString()))['payment']);
      const until = typeof expiresAt === 'string' && ISO_TIME.test(expiresAt) ? expiresAt : undefined;
      const words = `${priceOf(offer)} to ${offer.requirements.payTo} on ${networkName(offer)}`;
      const data = { ...termsOf(offer), expiresAt: until };
      return { words: until === undefined ? words : `${words}, until ${until}`, data, isError: false };
    },
    async buy({ gateway, resource, input = {} }, signal) {
      const call = { gateway: gatewayOf(gateway, policy.hosts), resource, input };
      const id = createHash('sha256')
        .update(canonicalJson([network, call.gateway, resource, input]))
        .digest('hex');
      const first = running.get(id) ?? purchase(id, call).finally(() => running.delete(id));
      running.set(id, first);
      const { told, isClosed } = await first;
      // An answer that its assistant no longer waits for is given again by the same payment.
      if (isClosed && !signal.aborted) open.drop(id);
      return told;
    },
  };
}

/** The URL of a gateway without its last slash. @throws Error for one that is not allowed */
function gatewayOf(text: string, hosts: readonly string[]): string {
  const reading = readHttpUrl(text, true);
  if (!reading.ok) throw new Error(`gateway ${reading.message}`);
  const { host, href, protocol } = reading.url;
  if (!hosts.includes(host))
    throw new Error(
      `${host} is not allowed: --allow of this wallet has ${hosts.join(', ')}; nothing was asked or paid`,
    );
  if (protocol === 'http:' && hostKind(reading.url) !== 'loopback')
    throw new Error(`${host} needs https: http is for this machine alone; nothing was asked or paid`);
  return href.replace(/\/+$/, '');
}

/** The gateway says that this payment gives nothing more. */
function isSpent({ status, body }: Reply): boolean {
  const { details } = members(jsonOf(Buffer.from(body).toString()));
  const { state } = members(details);
  return status === '409' && state !== undefined && !COLLECTABLE.has(state);
}

function unpaid(asked: Reply): Told {
  return { words: unpaidLine(asked), data: answerOf(asked), isError: !asked.ok };
}

function answerOf({ ok, status, contentType, body }: Reply) {
  return { delivered: ok, status, contentType, ...bodyOf(body) };
}

/** Payments with an open outcome: beside the key file, so that a restart finds them. */
function openPayments(keyFile: string | undefined) {
  const fileOf = (id: string): string => `${keyFile}.${id.slice(0, 16)}.json`;
  // Test money is worth no file.
  const held = new Map<string, SignedPayment>();
  return {
    find: (id: string) => (keyFile === undefined ? held.get(id) : keptPayment(fileOf(id))),
    keep(id: string, payment: SignedPayment): void {
      if (keyFile === undefined) held.set(id, payment);
      else keepPayment(fileOf(id), payment);
    },
    drop(id: string): void {
      if (keyFile === undefined) held.delete(id);
      else rmSync(fileOf(id), { force: true });
    },
  };
}
