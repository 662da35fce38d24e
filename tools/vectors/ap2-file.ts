/** Reads a file of AP2 vectors (ap2 15): a merchant, and cases with their expected results. */

import type { PublicJwk } from '../../src/crypto/signing-key.ts';
import type { Json, JsonObject } from '../../src/json/json.ts';
import { CHECKOUT_PROFILE } from '../../src/mandates/ap2/checkout.ts';
import { type IssuerSettings, staticIssuer } from '../../src/mandates/ap2/issuers.ts';
import type { Ap2Profile, Purchase, PurchasePayment } from '../../src/mandates/ap2/purchase.ts';
import { Members, readJson } from './members.ts';

/** What a merchant demands in one case. */
export type Policy = Ap2Profile['policy'];

/** One presentation and its expected result. */
export interface VectorCase {
  readonly name: string;
  /** Undefined: the header is absent. */
  readonly header: string | undefined;
  /** Unix seconds. */
  readonly now: number;
  readonly purchase: Purchase;
  readonly policy: Policy;
  /** Cases that are presented before, and how each of their uses ends. */
  readonly before: readonly { readonly name: string; readonly outcome: Outcome }[];
  readonly expected: Expectation;
}

export type Outcome = 'committed' | 'released' | 'uncertain';

/** The expected result. */
export interface Expectation {
  /** `accepted`, or a reason. */
  readonly result: string;
  /** Reasons that a verifier may give instead. */
  readonly also: readonly string[];
  /** Further expected members, such as code, status and mode. */
  readonly facts: JsonObject;
}

/** The merchant that the mandates of a file are presented to. */
export interface VectorMerchant {
  readonly profile: Ap2Profile;
  readonly issuers: readonly IssuerSettings[];
  /** The keys of accepted checkouts. */
  readonly checkoutKeys: readonly PublicJwk[];
}

interface VectorFile {
  readonly merchant: VectorMerchant;
  readonly cases: readonly VectorCase[];
}

const CONFIG = [
  'audience',
  'merchantId',
  'merchantIssuer',
  'profile',
  'clockSkewSeconds',
  'maxPresentationAgeSeconds',
  'maxEnvelopeBytes',
  'algorithms',
  // For other verifiers: this one accepts the types of ap2 3, whatever the file lists.
  'rootTyps',
  'currencies',
  'issuers',
  'checkoutKeys',
];
const ISSUER = ['id', 'keys', 'credentialVct', 'allowKidOnly'];
/** Required of a profile; no checkout is handed out here. */
const CHECKOUT_TTL_SECONDS = 300;

const FILE = ['title', 'profile', 'envelope', 'warning', 'howto', 'envelopeSchema', 'config', 'testKeys', 'cases'];
const FACTS = ['code', 'status', 'ap2Error', 'mode', 'reference', 'mandateId'];
const CASE = ['name', 'note', 'header', 'now', 'call', 'policy', 'before', 'expected', 'also', ...FACTS];
const OUTCOMES: readonly string[] = ['committed', 'released', 'uncertain'] satisfies readonly Outcome[];

/** @throws Error that names what is wrong in the file */
export function readVectors(path: string): VectorFile {
  const file = new Members(readJson(path), 'the file', FILE);
  const merchant = readMerchant(file.object('config'));
  const cases = file.list('cases').map((value, index) => readCase(value, `cases[${index}]`));
  const names = new Set(cases.map(({ name }) => name));
  if (names.size !== cases.length) throw new Error('two cases have one name');
  for (const { name, before } of cases)
    for (const earlier of before)
      if (!names.has(earlier.name)) throw new Error(`${name}: there is no case ${earlier.name} to present before`);
  return { merchant, cases };
}

function readCase(value: Json, where: string): VectorCase {
  const read = new Members(value, where, CASE);
  const facts = Object.fromEntries(FACTS.flatMap((name) => factOf(name, read.value(name))));
  return {
    name: read.text('name'),
    header: read.optional('header', read.text),
    now: read.number('now'),
    purchase: readCall(read.object('call'), `${where}.call`),
    policy: readPolicy(read.optional('policy', read.object) ?? {}, `${where}.policy`),
    before: (read.optional('before', read.list) ?? []).map((one, index) =>
      readBefore(one, `${where}.before[${index}]`),
    ),
    expected: { result: read.text('expected'), also: read.optional('also', read.texts) ?? [], facts },
  };
}

function factOf(name: string, value: Json | undefined): readonly (readonly [string, Json])[] {
  return value === undefined ? [] : [[name, value]];
}

function readCall(value: JsonObject, where: string): Purchase {
  const call = new Members(value, where, ['resourceId', 'input', 'price', 'payment']);
  const price = new Members(call.value('price'), `${where}.price`, ['amount', 'currency']);
  const resourceId = call.text('resourceId');
  return {
    resourceId,
    title: resourceId,
    input: call.object('input'),
    price: { amount: price.text('amount'), currency: price.text('currency') },
    payment: call.has('payment') ? readPayment(call.object('payment'), `${where}.payment`) : undefined,
  };
}

function readPayment(value: JsonObject, where: string): PurchasePayment {
  const payment = new Members(value, where, ['method', 'network', 'asset', 'payTo', 'payer', 'nonce']);
  if (payment.text('method') !== 'x402') throw new Error(`${where}.method must be x402`);
  return {
    method: 'x402',
    network: payment.text('network'),
    asset: payment.text('asset'),
    payTo: payment.text('payTo'),
    payer: payment.optional('payer', payment.text),
    nonce: payment.optional('nonce', payment.text),
  };
}

function readPolicy(value: JsonObject, where: string): Policy {
  const policy = new Members(value, where, ['paymentMandate', 'bindPaymentNonce']);
  const paymentMandate = policy.optional('paymentMandate', policy.text) ?? 'optional';
  if (paymentMandate !== 'optional' && paymentMandate !== 'required')
    throw new Error(`${where}.paymentMandate must be optional or required`);
  return { paymentMandate, bindPaymentNonce: policy.optional('bindPaymentNonce', policy.flag) ?? false };
}

function readBefore(value: Json, where: string): VectorCase['before'][number] {
  const before = new Members(value, where, ['case', 'outcome']);
  const outcome = before.text('outcome');
  if (!OUTCOMES.includes(outcome)) throw new Error(`${where}.outcome must be one of ${OUTCOMES.join(', ')}`);
  return { name: before.text('case'), outcome: outcome as Outcome };
}

function readMerchant(value: JsonObject): VectorMerchant {
  const config = new Members(value, 'config', CONFIG);
  if (config.text('profile') !== CHECKOUT_PROFILE)
    throw new Error(`config.profile must be ${CHECKOUT_PROFILE}, the one profile that there is`);
  const id = config.text('merchantId');
  return {
    profile: {
      audience: config.text('audience'),
      issuer: config.text('merchantIssuer'),
      merchant: { id, name: id },
      clockSkewSeconds: config.number('clockSkewSeconds'),
      maxPresentationAgeSeconds: config.number('maxPresentationAgeSeconds'),
      maxEnvelopeBytes: config.number('maxEnvelopeBytes'),
      algorithms: new Set(config.texts('algorithms')),
      checkoutTtlSeconds: CHECKOUT_TTL_SECONDS,
      exponents: readCurrencies(config.object('currencies')),
      policy: { paymentMandate: 'optional', bindPaymentNonce: false },
    },
    issuers: config.objects('issuers').map(readIssuer),
    checkoutKeys: config.objects('checkoutKeys').map(readCheckoutKey),
  };
}

function readCurrencies(value: JsonObject): ReadonlyMap<string, number> {
  const currencies = new Members(value, 'config.currencies', Object.keys(value));
  return new Map(Object.keys(value).map((currency) => [currency, currencies.number(currency)]));
}

function readIssuer(value: JsonObject, index: number): IssuerSettings {
  const where = `config.issuers[${index}]`;
  const issuer = new Members(value, where, ISSUER);
  const settings = {
    id: issuer.text('id'),
    keys: issuer.objects('keys'),
    credentialVct: issuer.optional('credentialVct', issuer.texts),
    allowKidOnly: issuer.optional('allowKidOnly', issuer.flag),
  };
  try {
    return staticIssuer(settings);
  } catch (cause) {
    throw new Error(`${where}: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}

function readCheckoutKey(value: JsonObject, index: number): PublicJwk {
  const key = new Members(value, `config.checkoutKeys[${index}]`, ['kty', 'crv', 'x', 'y', 'kid', 'use', 'alg']);
  if (key.text('crv') !== 'P-256' || key.text('kty') !== 'EC')
    throw new Error(`config.checkoutKeys[${index}] must be of curve P-256: checkouts are signed with ES256`);
  const { x, y, kid } = { x: key.text('x'), y: key.text('y'), kid: key.text('kid') };
  return { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' };
}
