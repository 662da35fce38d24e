import type { Json, JsonObject } from '../../../src/json/types.ts';
import type { Purchase } from '../../../src/mandates/ap2/model/purchase.ts';
import { readJson } from '../json-file.ts';
import { Members } from '../members.ts';
import { readShop, type Shop } from './config.ts';

/** How a shop demands mandates in one case. */
export type Policy = Shop['profile']['policy'];

/** One presentation and what has to come of it. */
export interface VectorCase {
  readonly name: string;
  /** Undefined: the header is absent. */
  readonly header: string | undefined;
  /** Unix seconds. */
  readonly now: number;
  readonly purchase: Purchase;
  readonly policy: Policy;
  /** What was presented before, and what became of it. */
  readonly before: readonly { readonly name: string; readonly outcome: Outcome }[];
  readonly expected: Expectation;
}

export type Outcome = 'committed' | 'released' | 'uncertain';

export interface Expectation {
  /** `accepted`, or a reason. */
  readonly result: string;
  /** Reasons that a verifier may give instead. */
  readonly also: readonly string[];
  /** What the file says of the result beside it, member by member. */
  readonly facts: JsonObject;
}

/** A file of vectors (ap2 15). */
interface VectorFile {
  readonly shop: Shop;
  readonly cases: readonly VectorCase[];
}

const FILE = ['title', 'profile', 'envelope', 'warning', 'howto', 'envelopeSchema', 'config', 'testKeys', 'cases'];
const FACTS = ['code', 'status', 'ap2Error', 'mode', 'reference', 'mandateId'];
const CASE = ['name', 'note', 'header', 'now', 'call', 'policy', 'before', 'expected', 'also', ...FACTS];
const OUTCOMES: readonly string[] = ['committed', 'released', 'uncertain'] satisfies readonly Outcome[];

/** @throws Error that says where the file is not what it should be */
export function readVectors(path: string): VectorFile {
  const file = new Members(readJson(path), 'the file', FILE);
  const shop = readShop(file.object('config'));
  const cases = file.list('cases').map((value, index) => readCase(value, `cases[${index}]`));
  const names = new Set(cases.map(({ name }) => name));
  if (names.size !== cases.length) throw new Error('two cases have one name');
  for (const { name, before } of cases)
    for (const earlier of before)
      if (!names.has(earlier.name)) throw new Error(`${name}: there is no case ${earlier.name} to present before`);
  return { shop, cases };
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

function readPayment(value: JsonObject, where: string): NonNullable<Purchase['payment']> {
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
