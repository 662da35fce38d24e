/** One facilitator over HTTP, and the API of x402 v2 that it speaks (x402 4.2). */

import { isObject, type Json } from '../../../json/json.ts';
import { createJsonPeer, type JsonAnswer, type JsonPeer, type JsonRequest } from '../chain/http-json.ts';
import { isTransactionHash } from '../chain/node.ts';
import { type CdpKey, cdpToken, readCdpKey } from '../wire/cdp-token.ts';
import type { BazaarEntry, EntryOf } from '../wire/offers.ts';
import { BAZAAR, PAYMENT_IDENTIFIER } from '../wire/proof.ts';
import { translatedReason } from '../wire/reasons.ts';
import type { FacilitatorAuth } from '../wire/settings.ts';
import type { PaymentRequirements, Proof } from '../wire/types.ts';

/** Largest answer that is read, bytes. */
export const MAX_VERDICT_BYTES = 65_536;

/** Shorter than a readiness check, which one silent facilitator must not fill, milliseconds. */
const SUPPORTED_DEADLINE_MS = 900;
/** Redirects of one call that are followed. */
const MOST_REDIRECTS = 3;
/** Redirects that keep the method and the body (RFC 9110, 15.4). */
const SAME_REQUEST: ReadonlySet<number> = new Set([307, 308]);
/** Codes of a kept-alive connection that the other side closed meanwhile. */
const BROKEN_CONNECTION: ReadonlySet<unknown> = new Set(['ECONNRESET', 'UND_ERR_SOCKET']);

/** Codes of a connection that was never established. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** A body with a boolean `isValid` or `success` is a verdict; at an outage only `success: true`. */

type VerifyAnswer =
  | { readonly kind: 'valid' }
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'none'; readonly cause: string };

/**
 * `claimed`: the facilitator reports a settlement. A `transaction` is well-formed and of our
 * network. `unsent`: there was no connection, so the request certainly did not reach it.
 */
export type SettleAnswer =
  | { readonly kind: 'claimed'; readonly transaction: string }
  | {
      readonly kind: 'denied';
      readonly reason: string;
      readonly transaction: string | undefined;
      /** Whether a hash was given, well-formed or not. */
      readonly namedTransaction: boolean;
    }
  | { readonly kind: 'none'; readonly cause: string; readonly transaction?: string; readonly unsent?: boolean };

/** Never rejects: an answer without a verdict is of kind `none`. Deadlines in milliseconds. */
export interface Facilitator {
  /** Its host, for causes: a path may hold a key. */
  readonly name: string;
  /** Asked again once within the deadline when the connection broke. */
  verify(proof: Proof, offer: PaymentRequirements, deadlineMs: number): Promise<VerifyAnswer>;
  /** Asked once. */
  settle(proof: Proof, offer: PaymentRequirements, deadlineMs: number): Promise<SettleAnswer>;
  /** The cause when it cannot serve `exact` on this CAIP-2 network. */
  fault(network: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * Opens no connection before the first call. The login is read for each call: it may change.
 * Follows redirects within the site. `entryOf`: what the facilitator may catalogue of a payment.
 */
export function connectFacilitator(
  url: string,
  authNow: () => FacilitatorAuth,
  entryOf: EntryOf = () => undefined,
): Facilitator {
  const peers = new Map<string, JsonPeer>();
  const peerOf = (base: string): JsonPeer => {
    const known = peers.get(base) ?? createJsonPeer(base, MAX_VERDICT_BYTES);
    peers.set(base, known);
    return known;
  };
  const login = loginTo(authNow);
  const ask: JsonPeer['exchange'] = async (request) => {
    const ends = performance.now() + request.deadlineMs;
    const { method, path } = request;
    let at = new URL(url);
    at.pathname = at.pathname.replace(/\/+$/, '') + path;
    let answer = await peerOf(url).exchange({ ...request, headers: login(method, at) });
    for (let followed = 0; followed < MOST_REDIRECTS; followed += 1) {
      const next = SAME_REQUEST.has(answer.status) ? withinSite(at, answer.location) : undefined;
      if (next === undefined) break;
      at = next;
      const deadlineMs = Math.max(1, ends - performance.now());
      const rest = { ...request, path: at.pathname + at.search, deadlineMs, headers: login(method, at) };
      answer = await peerOf(at.origin).exchange(rest);
    }
    return answer;
  };
  return {
    name: new URL(url).host,
    async verify(proof, offer, deadlineMs) {
      try {
        const body = facilitatorRequest(proof, offer, entryOf(proof.payload));
        const { status, json } = await askTwice(ask, { method: 'POST', path: '/verify', body, deadlineMs });
        return readVerifyAnswer(status, json, payerOf(proof));
      } catch (error) {
        return { kind: 'none', cause: causeOf(error) };
      }
    },
    async settle(proof, offer, deadlineMs) {
      try {
        const body = facilitatorRequest(proof, offer, entryOf(proof.payload));
        const { status, json } = await ask({ method: 'POST', path: '/settle', body, deadlineMs });
        return readSettleAnswer(status, json, { payer: payerOf(proof), network: offer.network });
      } catch (error) {
        return { kind: 'none', cause: causeOf(error), unsent: NOT_CONNECTED.has(codeOf(error)) };
      }
    },
    async fault(network) {
      try {
        const answer = await ask({ method: 'GET', path: '/supported', deadlineMs: SUPPORTED_DEADLINE_MS });
        return readSupported(answer, network);
      } catch (error) {
        return causeOf(error);
      }
    },
    async close() {
      await Promise.all([...peers.values()].map((peer) => peer.close()));
    },
  };
}

/** The target of a redirect within the site: the same host but for `www.`, and not less safe. */
function withinSite(from: URL, location = ''): URL | undefined {
  if (location === '' || !URL.canParse(location, from)) return undefined;
  const to = new URL(location, from);
  const [host, own] = [to, from].map(({ hostname }) => hostname.replace(/^www\./, ''));
  const isSafe = to.protocol === 'https:' || to.protocol === from.protocol;
  const isSamePort = to.port === from.port || to.protocol !== from.protocol;
  return host === own && isSafe && isSamePort && to.href !== from.href ? to : undefined;
}

/** The header that identifies the gateway, made for each request. */
function loginTo(
  authNow: () => FacilitatorAuth,
): (method: JsonRequest['method'], at: URL) => Readonly<Record<string, string>> {
  let read: { readonly secret: string; readonly key: CdpKey } | undefined;
  const keyOf = (secret: string): CdpKey => {
    if (read?.secret === secret) return read.key;
    const reading = readCdpKey(secret);
    if (!reading.ok) throw new Error(`the secret of the API key ${reading.message}`);
    read = { secret, key: reading.key };
    return reading.key;
  };
  return function loginOf(method, { host, pathname }) {
    const auth = authNow();
    switch (auth.type) {
      case 'none':
        return {};
      case 'bearer':
        return { authorization: `Bearer ${auth.token}` };
      case 'cdp': {
        const bound = { method, host, path: pathname };
        return { authorization: `Bearer ${cdpToken(auth.keyId, keyOf(auth.keySecret), bound, Date.now())}` };
      }
    }
  };
}

/** A call that moves nothing is repeated when its connection broke. Never used for `/settle`. */
async function askTwice(ask: JsonPeer['exchange'], request: JsonRequest): Promise<JsonAnswer> {
  const ends = performance.now() + request.deadlineMs;
  try {
    return await ask(request);
  } catch (error) {
    const left = ends - performance.now();
    if (left < 1 || !BROKEN_CONNECTION.has(codeOf(error))) throw error;
    return ask({ ...request, deadlineMs: left });
  }
}

/**
 * The body of `/verify` and `/settle`. Both copies of the requirement are ours, and so is the
 * catalogue entry. Of the buyer's echo the body has only the URL (equal to ours) and the payment
 * identifier, so the facilitator acts on our terms.
 */
function facilitatorRequest({ payload }: Proof, offer: PaymentRequirements, entry: BazaarEntry | undefined): object {
  const resource = entry?.resource ?? (payload.resource && { url: payload.resource.url });
  const identifier = payload.extensions?.[PAYMENT_IDENTIFIER];
  const extensions = {
    ...(identifier === undefined ? {} : { [PAYMENT_IDENTIFIER]: identifier }),
    ...(entry === undefined ? {} : { [BAZAAR]: entry.extension }),
  };
  return {
    x402Version: 2,
    paymentPayload: {
      x402Version: 2,
      ...(resource === undefined ? {} : { resource }),
      accepted: offer,
      payload: payload.payload,
      ...(Object.keys(extensions).length === 0 ? {} : { extensions }),
    },
    paymentRequirements: offer,
  };
}

function readVerifyAnswer(status: number, json: Json | undefined, payer: string): VerifyAnswer {
  if (isOutage(status) || !isObject(json) || typeof json['isValid'] !== 'boolean') return noVerdict(status);
  if (!json['isValid']) return { kind: 'invalid', reason: translatedReason(json['invalidReason']) };
  return samePayer(json['payer'], payer)
    ? { kind: 'valid' }
    : { kind: 'none', cause: 'the verdict names another payer' };
}

function readSettleAnswer(
  status: number,
  json: Json | undefined,
  expected: { readonly payer: string; readonly network: string },
): SettleAnswer {
  if (!isObject(json) || typeof json['success'] !== 'boolean') return noVerdict(status);
  const { transaction, network, payer } = json;
  const named = transaction !== undefined && transaction !== null && transaction !== '';
  // A hash of another network cannot be looked up here; a refusal may leave the network out.
  const ours = network === expected.network || (network === undefined && !json['success']);
  const hash = ours && isTransactionHash(transaction) ? transaction.toLowerCase() : undefined;
  if (!json['success'] && isOutage(status))
    return hash === undefined ? noVerdict(status) : { ...noVerdict(status), transaction: hash };
  if (!json['success'])
    return {
      kind: 'denied',
      reason: translatedReason(json['errorReason']),
      transaction: hash,
      namedTransaction: named,
    };
  if (!ours) return { kind: 'none', cause: 'the settlement names another network' };
  if (hash === undefined) return { kind: 'none', cause: 'the settlement names no transaction' };
  if (!samePayer(payer, expected.payer))
    return { kind: 'none', cause: 'the settlement names another payer', transaction: hash };
  return { kind: 'claimed', transaction: hash };
}

/** The cause when the facilitator does not serve `exact` on this network. */
function readSupported({ status, json, location }: JsonAnswer, network: string): string | undefined {
  if (status !== 200) return `the facilitator answered ${status}${leadingTo(status, location)}`;
  const kinds = isObject(json) ? json['kinds'] : undefined;
  if (!Array.isArray(kinds)) return 'the facilitator does not say what it supports';
  const served = kinds.some(
    (kind: Json) =>
      isObject(kind) && kind['x402Version'] === 2 && kind['scheme'] === 'exact' && covers(kind['network'], network),
  );
  return served ? undefined : `the facilitator does not serve exact on ${network}`;
}

/** The target of a redirect in words, without its query and long parts, which may be keys. */
function leadingTo(status: number, location = ''): string {
  if (status < 300 || status > 399 || location === '') return '';
  const shown = location.replace(/[?#].*/s, '').replace(/[^/.]{24,}/g, '…');
  return ` and leads to ${shown.slice(0, 200)}: name that address in facilitator.url`;
}

/** Whether a status concerns the facilitator and not the payment (contract 1.2). */
function isOutage(status: number): boolean {
  return status >= 500 || status === 401 || status === 403 || status === 429;
}

/** A network may be given as a family, `eip155:*`. */
function covers(offered: Json | undefined, network: string): boolean {
  return offered === network || offered === `${network.slice(0, network.indexOf(':'))}:*`;
}

function samePayer(payer: Json | undefined, expected: string): boolean {
  if (payer === undefined || payer === null || payer === '') return true;
  return typeof payer === 'string' && payer.toLowerCase() === expected.toLowerCase();
}

function noVerdict(status: number): { readonly kind: 'none'; readonly cause: string } {
  return { kind: 'none', cause: `the facilitator answered ${status} without a verdict` };
}

function payerOf(proof: Proof): string {
  return proof.payload.payload.authorization.from;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as { code?: unknown }).code : undefined;
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  const code = codeOf(error);
  return typeof code === 'string' ? `${code}: ${error.message}` : `${error.name}: ${error.message}`;
}
