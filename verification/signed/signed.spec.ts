import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { didDocument, publicJwk } from '../../src/crypto/signing-key.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { canonicalJson } from '../../src/json/json.ts';
import { judge } from '../../tools/verify-receipt/command.ts';
import { type FindKey, keysOfDid, keysOfSet } from '../../tools/verify-receipt/signed.ts';
import {
  CHANNELS,
  type Delivered,
  deliverOver,
  openSignedShop,
  purchaseOf,
  runDeliveries,
  type SignedShop,
} from './deliveries.ts';

/** `node verification/signed/main.ts` makes 1,000. */
const DELIVERIES = 42;

it('receipts and statements of every channel verify with the official package and with ours', async () => {
  const { verified, violations } = await runDeliveries(DELIVERIES);
  assert.deepEqual(violations, []);
  for (const channel of CHANNELS) assert.equal(verified[channel], DELIVERIES / CHANNELS.length, channel);
});

/** One character of base64url at a place becomes another that is legal there. */
function turned(text: string, at: number): string {
  const other = text[at] === 'A' ? 'B' : 'A';
  return text.slice(0, at) + other + text.slice(at + 1);
}

/** A part of a compact JWS rewritten as JSON, with the signature that stands there. */
function rewritten(jws: string, part: 0 | 1, change: (members: JsonObject) => JsonObject): string {
  const parts = jws.split('.');
  const members = JSON.parse(Buffer.from(parts[part] ?? '', 'base64url').toString()) as JsonObject;
  parts[part] = Buffer.from(canonicalJson(change(members))).toString('base64url');
  return parts.join('.');
}

const payloadOf = (jws: string): JsonObject =>
  JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()) as JsonObject;
const headOf = (jws: string): JsonObject =>
  JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString()) as JsonObject;

const STRANGER = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** The same document signed by another key. */
function resigned(jws: string, change: { head?: JsonObject; payload?: JsonObject; text?: string } = {}): string {
  const head = Buffer.from(JSON.stringify({ ...headOf(jws), ...change.head })).toString('base64url');
  const payload = Buffer.from(change.text ?? canonicalJson({ ...payloadOf(jws), ...change.payload })).toString(
    'base64url',
  );
  const signature = sign('sha256', Buffer.from(`${head}.${payload}`), {
    key: STRANGER.privateKey,
    dsaEncoding: 'ieee-p1363',
  });
  return `${head}.${payload}.${signature.toString('base64url')}`;
}

/** What a mutation gives to the verifier. */
interface Shown {
  readonly content: string;
  readonly answer?: Buffer;
  readonly findKey?: FindKey;
}

describe('acg verify-receipt', () => {
  let shop: SignedShop;
  let bought: Delivered;
  let other: Delivered;
  /** The PAYMENT-REQUIRED document of a 402. */
  let challenge: { readonly accepts: readonly JsonObject[] };
  before(async () => {
    shop = await openSignedShop({ offers: true });
    const unpaid = await shop.gateway.invoke('market_report', { city: 'Unpaid' });
    challenge = JSON.parse(Buffer.from(String(unpaid.headers.get('payment-required')), 'base64').toString());
    bought = await deliverOver('trailer', shop, 1);
    other = await deliverOver('trailer', shop, 2);
  });
  after(() => shop?.close());

  const verdict = ({ content, answer, findKey = keysOfDid(shop.did) }: Shown) => judge(content, { findKey, answer });
  /** As /api/purchases answers. */
  const purchase = (changes: JsonObject = {}): string =>
    JSON.stringify({ payment: bought.payment, statement: bought.statement, ...changes });
  /** The 402 whose `accepts` says something else. */
  const offered = (changes: JsonObject): string =>
    JSON.stringify({ ...challenge, accepts: [{ ...challenge.accepts[0], ...changes }] });
  /** The keys of the shop, and a stranger's under their name. */
  const impostor = (): FindKey => {
    const jwk = STRANGER.publicKey.export({ format: 'jwk' }) as { x: string; y: string };
    const [own] = shop.jwks.keys;
    const keys = [{ ...publicJwk(jwk), kid: String(own?.['kid']) }];
    return keysOfDid(didDocument(String(shop.did['id']), keys) as unknown as JsonObject);
  };

  it('says what verifies, whatever form it was kept in', async () => {
    const header = Buffer.from(JSON.stringify(bought.payment)).toString('base64');
    const forms = [header, JSON.stringify(bought.payment), bought.receipt, bought.statement, purchase(), offered({})];
    for (const content of forms) {
      const { lines, verified } = verdict({ content });
      assert.ok(verified, lines.join('\n'));
    }
    const proof = await shop.proof('market_report', { city: 'Kept' });
    const invoked = await shop.gateway.invoke('market_report', { city: 'Kept' }, { 'payment-signature': proof });
    const answer = Buffer.from(await invoked.arrayBuffer());
    const payment = JSON.parse(Buffer.from(String(invoked.headers.get('payment-response')), 'base64').toString());
    const content = JSON.stringify(await purchaseOf(shop, payment as JsonObject, proof));
    const { lines, verified } = verdict({ content, answer });
    assert.ok(verified, lines.join('\n'));
    assert.match(lines.join('\n'), /^statement: what became of the purchase$/m);
    assert.match(lines.join('\n'), /^ {2}state delivered$/m);
    assert.match(lines.join('\n'), /^the answer is the one that was delivered: \d+ bytes$/m);
  });

  it('claims nothing without keys', () => {
    const { lines, verified } = judge(bought.receipt, { findKey: undefined, answer: undefined });
    assert.equal(verified, false);
    assert.match(lines.at(-1) ?? '', /^NOT VERIFIED: no signature was checked/);
  });

  const MUTATIONS: Readonly<Record<string, () => Shown>> = {
    'a digit of the payload of a receipt': () => ({ content: turned(bought.receipt, bought.receipt.indexOf('.') + 9) }),
    'a digit of the signature of a receipt': () => ({ content: turned(bought.receipt, bought.receipt.length - 9) }),
    'a digit of the head of a receipt': () => ({ content: turned(bought.receipt, 9) }),
    'another payer in a receipt': () => ({
      content: rewritten(bought.receipt, 1, (all) => ({ ...all, payer: '0x0' })),
    }),
    'another time in a receipt': () => ({ content: rewritten(bought.receipt, 1, (all) => ({ ...all, issuedAt: 1 })) }),
    'a receipt without its transaction': () => ({
      content: rewritten(bought.receipt, 1, ({ transaction: _gone, ...rest }) => rest),
    }),
    'a receipt made into an offer': () => ({
      content: rewritten(bought.receipt, 1, ({ payer: _gone, ...rest }) => ({ ...rest, payTo: '0x0' })),
    }),
    'a signature that covers nothing': () => ({ content: bought.receipt.replace(/[^.]*$/, 'A'.repeat(86)) }),
    'a receipt without a signature': () => ({ content: bought.receipt.replace(/[^.]*$/, '') }),
    'the algorithm none': () => ({ content: rewritten(bought.receipt, 0, (head) => ({ ...head, alg: 'none' })) }),
    'a head that carries its own key': () => ({
      content: rewritten(bought.receipt, 0, (head) => ({ ...head, jku: 'https://evil.example' })),
    }),
    'the signature of a stranger under the name of the key': () => ({ content: resigned(bought.receipt) }),
    'a key of another host': () => ({
      content: resigned(bought.receipt, { head: { kid: String(headOf(bought.receipt)['kid']).replace('127', '128') } }),
    }),
    'another key under the same name, and an honest receipt': () => ({ content: bought.receipt, findKey: impostor() }),
    'a payload that is spelled otherwise': () => ({
      content: resigned(bought.receipt, { text: JSON.stringify(payloadOf(bought.receipt), null, 1) }),
      findKey: impostor(),
    }),
    'a member beside those of a statement': () => ({
      content: resigned(bought.statement, { payload: { promise: 'all' } }),
      findKey: impostor(),
    }),
    'a statement that passes for a receipt': () => ({
      content: rewritten(bought.statement, 0, ({ typ: _gone, ...head }) => head),
    }),
    'another state in a statement': () => ({
      content: rewritten(bought.statement, 1, (all) => ({ ...all, state: 'refunded' })),
    }),
    'another amount in a statement': () => ({
      content: rewritten(bought.statement, 1, (all) => ({
        ...all,
        payment: { ...(all['payment'] as object), amount: '1' },
      })),
    }),
    'another digest in a statement': () => ({
      content: rewritten(bought.statement, 1, (all) => ({
        ...all,
        answer: { ...(all['answer'] as object), sha256: '0'.repeat(64) },
      })),
    }),
    'a byte of the answer': () => {
      const answer = Buffer.from(bought.bytes);
      answer[0] = (answer[0] ?? 0) ^ 1;
      return { content: bought.statement, answer };
    },
    'an answer that is cut off': () => ({ content: bought.statement, answer: bought.bytes.subarray(1) }),
    'the answer of another purchase': () => ({ content: bought.statement, answer: other.bytes }),
    'an answer beside a receipt, which says nothing of it': () => ({ content: bought.receipt, answer: bought.bytes }),
    'the statement of another purchase': () => ({ content: purchase({ statement: other.statement }) }),
    'another transaction beside a receipt': () => ({
      content: JSON.stringify({ ...bought.payment, transaction: other.payment['transaction'] }),
    }),
    'another state beside a statement': () => ({ content: purchase({ state: 'refunded' }) }),
    'another receipt beside a statement': () => ({
      content: purchase({ receiptId: String(other.payment['receiptId']) }),
    }),
    'another resource beside a statement': () => ({ content: purchase({ resourceId: 'free_report' }) }),
    'a refund beside a statement of none': () => ({
      content: purchase({ refund: { status: 'refunded', transaction: String(other.payment['transaction']) } }),
    }),
    'another time of delivery beside a statement': () => ({
      content: purchase({ deliveredAt: '2020-01-01T00:00:00.000Z' }),
    }),
    'another amount beside a statement': () => ({
      content: purchase({ payment: { ...bought.payment, amount: '99.9' } }),
    }),
    'a failure beside a receipt': () => ({
      content: JSON.stringify({ ...bought.payment, success: false, errorReason: 'insufficient_funds' }),
    }),
    'the resource of another offer': () => ({
      content: JSON.stringify({
        ...challenge,
        resource: { url: String(payloadOf(bought.receipt)['resourceUrl']).replace('market_report', 'dearer_report') },
      }),
    }),
    'an offer that is signed and not among what is offered': () => ({
      content: JSON.stringify({ ...challenge, accepts: [] }),
    }),
    'another price beside a signed offer': () => ({ content: offered({ amount: '1' }) }),
    'another payee beside a signed offer': () => ({ content: offered({ payTo: `0x${'1'.repeat(40)}` }) }),
    'another offer beside the signed one': () => ({
      content: JSON.stringify({
        ...challenge,
        accepts: [...challenge.accepts, { ...challenge.accepts[0], amount: '1' }],
      }),
    }),
    'the signature of another receipt': () => ({
      content: bought.receipt.replace(/[^.]*$/, other.receipt.split('.')[2] ?? ''),
    }),
    'nothing that is signed': () => ({ content: JSON.stringify({ ...bought.payment, extensions: {} }) }),
  };
  const NAMED: Readonly<Record<string, () => { readonly content: string; readonly path: string }>> = {
    'the time of an offer': () => ({
      content: offered({ maxTimeoutSeconds: 9 }),
      path: 'accepts.0.maxTimeoutSeconds',
    }),
    'what moves first': () => ({
      content: offered({ extra: { paymentFlow: 'authorization' } }),
      path: 'accepts.0.extra.paymentFlow',
    }),
    'a member that was added deep inside': () => ({
      content: purchase({ payment: { ...bought.payment, promise: { of: ['all'] } } }),
      path: 'payment.promise.of.0',
    }),
    'the time of delivery beside a receipt alone': () => ({
      content: JSON.stringify({ ...bought.payment, deliveredAt: '2020-01-01T00:00:00.000Z' }),
      path: 'deliveredAt',
    }),
  };
  for (const [title, unsigned] of Object.entries(NAMED))
    it(`names what nothing signs: ${title}`, () => {
      const { content, path } = unsigned();
      const { lines, verified } = verdict({ content });
      assert.equal(verified, true, lines.join('\n'));
      assert.ok(lines.includes(`not signed, and shows nothing: ${path}`), lines.join('\n'));
    });
  for (const [title, mutation] of Object.entries(MUTATIONS))
    it(`refuses ${title}`, () => {
      const { lines, verified } = verdict(mutation());
      assert.equal(verified, false, lines.join('\n'));
      assert.match(lines.at(-1) ?? '', /^REFUSED: /);
    });

  it('says what a file of keys lacks', () => {
    assert.throws(
      () => keysOfDid(shop.jwks as unknown as JsonObject),
      /^Error: it is no DID document, it names no id$/,
    );
    assert.throws(() => keysOfSet(shop.did), /^Error: it is no key set, it has no list of keys$/);
  });

  it('takes a key set in the place of a DID document', () => {
    const findKey = keysOfSet(shop.jwks as unknown as JsonObject);
    assert.ok(verdict({ content: purchase(), answer: bought.bytes, findKey }).verified);
  });
});
