import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { eventsUntil } from '../support/books.ts';
import { type HostileFacilitator, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { startRedis } from '../support/redis.ts';
import { openSeller, type Seller } from '../support/seller.ts';
import { openShop } from '../support/shop.ts';

const INPUT = { city: 'Berlin' };
const PRICE_UNITS = 10_000n;

/** A payload as its JSON, open to every mutation. */
interface Payload {
  x402Version: unknown;
  resource?: { url: unknown };
  accepted: Record<string, unknown> & { extra: Record<string, unknown> };
  payload: { signature: unknown; authorization: Record<string, unknown> };
  [name: string]: unknown;
}

const decode = (header: string): Payload => JSON.parse(Buffer.from(header, 'base64').toString()) as Payload;
const encode = (payload: unknown): string => Buffer.from(JSON.stringify(payload)).toString('base64');
const OTHER = `0x${'12'.repeat(20)}`;
const seconds = (): number => Math.floor(Date.now() / 1_000);

interface Mutation {
  readonly field: string;
  readonly reason: string;
  /** Dotted path in the payload. */
  readonly at: string;
  readonly to: unknown;
}

const ABSENT = Symbol('absent');

/** Puts `to` (or what it returns, when it depends on the time of the call) at a dotted path, or removes what is there. */
function mutate(payload: object, at: string, to: unknown): void {
  const names = at.split('.');
  const last = names.pop() ?? '';
  let parent = payload as Record<string, unknown>;
  for (const name of names) parent = parent[name] as Record<string, unknown>;
  if (to === ABSENT) delete parent[last];
  else parent[last] = typeof to === 'function' ? (to as () => unknown)() : to;
}

/** One row for every field of a proof. */
const MUTATIONS: readonly Mutation[] = [
  { field: 'x402Version', reason: 'invalid_x402_version', at: 'x402Version', to: 1 },
  {
    field: 'resource.url',
    reason: 'invalid_payment_requirements',
    at: 'resource',
    to: { url: 'https://elsewhere.example/x' },
  },
  { field: 'accepted.scheme', reason: 'invalid_scheme', at: 'accepted.scheme', to: 'upto' },
  { field: 'accepted.network', reason: 'invalid_network', at: 'accepted.network', to: 'eip155:1' },
  { field: 'accepted.amount', reason: 'invalid_payment_requirements', at: 'accepted.amount', to: '1' },
  { field: 'accepted.asset', reason: 'invalid_payment_requirements', at: 'accepted.asset', to: OTHER },
  { field: 'accepted.payTo', reason: 'invalid_payment_requirements', at: 'accepted.payTo', to: OTHER },
  {
    field: 'accepted.maxTimeoutSeconds',
    reason: 'invalid_payment_requirements',
    at: 'accepted.maxTimeoutSeconds',
    to: 9,
  },
  { field: 'accepted.extra.name', reason: 'invalid_payment_requirements', at: 'accepted.extra.name', to: 'Other' },
  { field: 'accepted.extra.version', reason: 'invalid_payment_requirements', at: 'accepted.extra.version', to: '1' },
  {
    field: 'accepted.extra.paymentFlow',
    reason: 'invalid_payment_requirements',
    at: 'accepted.extra.paymentFlow',
    to: ABSENT,
  },
  {
    field: 'authorization.from',
    reason: 'invalid_exact_evm_payload_signature',
    at: 'payload.authorization.from',
    to: OTHER,
  },
  {
    field: 'authorization.to',
    reason: 'invalid_exact_evm_payload_recipient_mismatch',
    at: 'payload.authorization.to',
    to: OTHER,
  },
  {
    field: 'authorization.value, one less',
    reason: 'invalid_exact_evm_payload_authorization_value_mismatch',
    at: 'payload.authorization.value',
    to: '9999',
  },
  {
    field: 'authorization.value, one more',
    reason: 'invalid_exact_evm_payload_authorization_value_mismatch',
    at: 'payload.authorization.value',
    to: '10001',
  },
  {
    field: 'authorization.value as a number',
    reason: 'invalid_payload',
    at: 'payload.authorization.value',
    to: 10_000,
  },
  {
    field: 'authorization.validAfter, in the future',
    reason: 'invalid_exact_evm_payload_authorization_valid_after',
    at: 'payload.authorization.validAfter',
    to: () => String(seconds() + 60),
  },
  {
    field: 'authorization.validAfter, another past',
    reason: 'invalid_exact_evm_payload_signature',
    at: 'payload.authorization.validAfter',
    to: '1',
  },
  {
    field: 'authorization.validBefore, expired',
    reason: 'invalid_exact_evm_payload_authorization_valid_before',
    at: 'payload.authorization.validBefore',
    to: () => String(seconds() - 1),
  },
  {
    field: 'authorization.validBefore, far future',
    reason: 'invalid_exact_evm_payload_authorization_valid_before',
    at: 'payload.authorization.validBefore',
    to: () => String(seconds() + 100_000),
  },
  {
    field: 'authorization.nonce',
    reason: 'invalid_exact_evm_payload_signature',
    at: 'payload.authorization.nonce',
    to: `0x${'34'.repeat(32)}`,
  },
  {
    field: 'signature',
    reason: 'invalid_exact_evm_payload_signature',
    at: 'payload.signature',
    to: `0x${'11'.repeat(64)}1b`,
  },
  { field: 'signature, missing', reason: 'invalid_payload', at: 'payload.signature', to: ABSENT },
  { field: 'a member nobody knows', reason: 'invalid_payload', at: 'surprise', to: true },
];

/** Spellings of one base64 text; only the first is canonical. */
const SPELLINGS: readonly {
  readonly name: string;
  readonly of: (header: string) => string;
  readonly accepted: boolean;
}[] = [
  { name: 'as it is', of: (header) => header, accepted: true },
  { name: 'text behind the padding', of: (header) => `${header}garbage`, accepted: false },
  { name: 'a space inside', of: (header) => `${header.slice(0, 20)} ${header.slice(20)}`, accepted: false },
  { name: 'an asterisk inside', of: (header) => `${header.slice(0, 20)}*${header.slice(20)}`, accepted: false },
  { name: 'a data URL', of: (header) => `data:application/json;base64,${header}`, accepted: false },
  { name: 'one padding sign too many', of: (header) => `${header}=`, accepted: false },
  { name: 'base64 of base64', of: (header) => Buffer.from(header).toString('base64'), accepted: false },
  { name: 'quoted', of: (header) => `"${header}"`, accepted: false },
  { name: 'hexadecimal', of: (header) => Buffer.from(header, 'base64').toString('hex'), accepted: false },
];

/** A flipped letter case, an omitted zero byte, another order: all the same authorization. */
function spellingsOfOneAuthorization(header: string): readonly string[] {
  const upper = (text: string): string => `0x${text.slice(2).toUpperCase()}`;
  const given = decode(header);
  const { authorization, signature } = given.payload;
  const bareV = String(signature).replace(/1b$/i, '00').replace(/1c$/i, '01');
  const changes: readonly (readonly [at: string, to: unknown])[] = [
    ['x402Version', 2],
    ['payload.authorization.from', upper(String(authorization['from']))],
    ['payload.authorization.to', upper(String(authorization['to']))],
    ['payload.authorization.nonce', upper(String(authorization['nonce']))],
    ['payload.signature', upper(String(signature))],
    ['payload.signature', bareV],
    ['accepted.asset', String(given.accepted['asset']).toLowerCase()],
    ['accepted.payTo', String(given.accepted['payTo']).toLowerCase()],
    ['accepted.extra.note', 'mine'],
    ['resource', ABSENT],
  ];
  return changes.flatMap(([at, to]) => {
    const payload = decode(header);
    mutate(payload, at, to);
    const reversed = Object.fromEntries(Object.entries(payload).reverse());
    return [encode(payload), encode(reversed).replace(/=+$/, '')];
  });
}

describe('a proof is believed only when all of it is right', () => {
  let seller: Seller;
  let facilitator: HostileFacilitator;
  before(async () => {
    facilitator = await startHostileFacilitator('eip155:31337');
    // This facilitator approves everything, so whatever is refused here was refused by the gateway itself.
    seller = await openSeller({ facilitator: { mode: 'remote', url: facilitator.url } });
  });
  after(async () => {
    await seller.close();
    await facilitator.stop();
  });

  for (const { field, reason, at, to } of MUTATIONS)
    it(`refuses ${field} with ${reason} and a fresh challenge, whatever the facilitator would say`, async () => {
      const payload = decode(await seller.proof('market_report', INPUT));
      mutate(payload, at, to);
      const asked = facilitator.calls.length;
      const requestId = `mutation-${MUTATIONS.findIndex((row) => row.field === field)}`;
      const headers = { 'payment-signature': encode(payload), 'x-request-id': requestId };
      const answer = await seller.shop.invoke('market_report', INPUT, headers);
      const body = (await answer.json()) as {
        status: string;
        code: string;
        error: unknown;
        payment: { envelope: { error: string } };
      };
      assert.deepEqual([answer.status, body.status, body.code], [402, 'payment-required', 'PAYMENT_REQUIRED']);
      assert.deepEqual(body.error, {
        code: 'PAYMENT_INVALID',
        reason,
        message: `The payment proof was refused: ${reason}.`,
        retryable: false,
      });
      assert.equal(body.payment.envelope.error, reason);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      const document = JSON.parse(
        Buffer.from(answer.headers.get('payment-required') ?? '', 'base64').toString(),
      ) as object;
      assert.deepEqual(document, body.payment.envelope);
      assert.equal(facilitator.calls.length, asked, 'nobody was asked');
      const events = await eventsUntil(seller.shop, requestId, 'payment.required');
      assert.deepEqual(
        events.map((event) => event.type),
        ['resource.requested', 'payment.rejected', 'payment.required'],
      );
      assert.deepEqual(events[1]?.data, { reason });
    });

  it('refuses a header that came twice, and one over 8 KiB', async () => {
    const proof = await seller.proof('market_report', INPUT);
    const url = `${seller.shop.url}/api/resources/market_report/invoke`;
    const twice = new Headers({ 'content-type': 'application/json' });
    const http = await import('node:http');
    const status = await new Promise<string>((resolve, reject) => {
      const request = http.request(url, { method: 'POST' }, (response) => {
        let text = '';
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
      });
      request.on('error', reject);
      request.setHeader('content-type', 'application/json');
      request.setHeader('payment-signature', [proof, proof]);
      request.end(JSON.stringify(INPUT));
    });
    assert.equal((JSON.parse(status) as { error: { reason: string } }).error.reason, 'invalid_payload');
    twice.set('payment-signature', 'A'.repeat(8_193));
    const large = await fetch(url, { method: 'POST', headers: twice, body: JSON.stringify(INPUT) });
    assert.equal(((await large.json()) as { error: { reason: string } }).error.reason, 'invalid_payload');
  });

  it('ignores a proof on a free resource', async () => {
    const answer = await seller.shop.invoke('free_market_report', INPUT, { 'payment-signature': 'nonsense' });
    assert.equal(answer.status, 200);
    await answer.arrayBuffer();
  });
});

describe('one authorization is one payment', () => {
  let seller: Seller;
  before(async () => {
    seller = await openSeller();
  });
  after(() => seller.close());

  it('nine spellings of one base64 text: one is accepted', async () => {
    const statuses: Record<string, number> = {};
    for (const { name, of } of SPELLINGS) {
      const proof = await seller.proof('market_report', INPUT);
      const answer = await seller.shop.invoke('market_report', INPUT, { 'payment-signature': of(proof) });
      statuses[name] = answer.status;
      await answer.arrayBuffer();
    }
    assert.deepEqual(statuses, Object.fromEntries(SPELLINGS.map(({ name, accepted }) => [name, accepted ? 200 : 402])));
  });

  it('twenty spellings of one signature in parallel: one settlement, one call to the merchant', async () => {
    const before = await seller.income();
    seller.merchant.forget();
    const spellings = spellingsOfOneAuthorization(await seller.proof('market_report', INPUT));
    assert.equal(new Set(spellings).size, 20);
    const answers = await Promise.all(
      spellings.map((proof) => seller.shop.invoke('market_report', INPUT, { 'payment-signature': proof })),
    );
    const counts = new Map<number, number>();
    for (const answer of answers) {
      counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
      await answer.arrayBuffer();
    }
    assert.equal((await seller.income()) - before, PRICE_UNITS);
    assert.equal(seller.merchant.requests.length, 1);
    assert.deepEqual(Object.fromEntries(counts), { 200: 1, 409: 19 });
  });
});

describe('two gateways over one Redis', () => {
  it('twenty spellings of one authorization, half to each: one settlement, one call to the merchant', async () => {
    const redis = await startRedis();
    const storage = { redis: { url: redis.url } };
    const payTo = privateKeyToAddress(generatePrivateKey());
    const first = await openSeller({ storage, payTo });
    const facilitator = { mode: 'local' } as const;
    const second = await openShop({ chain: first.chain, merchantUrl: first.merchant.url, facilitator, storage, payTo });
    try {
      const spellings = spellingsOfOneAuthorization(await first.proof('market_report', INPUT));
      const answers = await Promise.all(
        spellings.map((proof, at) =>
          (at % 2 === 0 ? first.shop : second).invoke('market_report', INPUT, { 'payment-signature': proof }),
        ),
      );
      const statuses = answers.map(({ status }) => status).sort();
      for (const answer of answers) await answer.arrayBuffer();
      assert.deepEqual(statuses, [200, ...Array<number>(19).fill(409)]);
      assert.equal(await first.income(), PRICE_UNITS);
      assert.equal(first.merchant.requests.length, 1);
    } finally {
      await second.close();
      await first.close();
      await redis.stop();
    }
  });
});
