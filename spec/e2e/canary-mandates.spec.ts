import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/json/json.ts';
import { allowedMerchants, lineItems, plain } from '../../tools/mandate/maker/constraints.ts';
import { withClaims, withHeader } from '../support/ap2/hands.ts';
import type { Presentation, Wishes } from '../support/ap2/wishes.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { everythingIn, found, type Sinks } from './canary-sinks.ts';
import { CHANNELS, type Reply } from './mandate-channels.ts';
import { type MandateSeller, openMandateSeller } from './mandate-seller.ts';

/**
 * Content of a mandate that only its verifier reads (ap2 12). None of it may appear in any output.
 */
const CANARIES = {
  'a claim of the user': 'canary-user-claim-51c0',
  'risk data': 'canary-risk-data-77ab',
  'the description of an instrument': 'canary-instrument-description-e2',
  'the name of another merchant': 'canary-other-merchant-name-0d',
  'an unknown constraint': 'canary.unknown.constraint-9f',
  'an unknown key id': 'canary-unknown-key-id-3b',
  'an untrusted issuer': 'https://canary-stranger-41.example',
} as const;
const NAMED = 'the name of another merchant';
const INPUT = { city: 'Berlin' };

describe('the content of mandates', () => {
  let redis: TestRedis;
  let testbed: MandateSeller;
  const replies: Reply[] = [];
  const presented: Presentation[] = [];
  before(async () => {
    redis = await startRedis({ args: ['--requirepass', 'password'] });
    const storage = { redis: { url: redis.url } };
    const overrides = { storage: { redis: { password: 'password' } } };
    testbed = await openMandateSeller(['market_report', 'echo', 'failing_post'], {}, { storage, overrides });
  });
  after(async () => {
    await testbed?.close();
    await redis?.stop();
  });

  const planted = (resourceId: string, title: string, input: object, price: string): Wishes => ({
    purchase: testbed.purchaseOf(resourceId, title, input, price),
    payment: true,
    constraints: [
      lineItems([{ id: 'line_1', acceptable: [{ id: resourceId, title }], quantity: 1 }]),
      allowedMerchants([testbed.profile.merchant, { id: 'other', name: CANARIES[NAMED] }]),
    ],
    hands: {
      open: withClaims({ sub: CANARIES['a claim of the user'] }),
      closedPayment: {
        content: ({ mandate, disclosures }) => ({
          disclosures,
          mandate: {
            ...mandate,
            payment_instrument: {
              ...(mandate['payment_instrument'] as JsonObject),
              description: CANARIES['the description of an instrument'],
            },
            risk_data: { seen: CANARIES['risk data'] },
          },
        }),
      },
    },
  });

  /** Buys with a mandate that the wishes may spoil, and again with the same one. */
  const buy = async (
    channel: keyof typeof CHANNELS,
    [resourceId, title, input, price]: readonly [string, string, object, string],
    spoilt: Wishes = {},
  ): Promise<Reply> => {
    const send = CHANNELS[channel];
    const call = { resourceId, input };
    const asked = await send(testbed.gateway, call);
    const mandate = testbed.mandateFor(asked.body, { ...planted(resourceId, title, input, price), ...spoilt });
    presented.push(mandate);
    const proof = await testbed.buyer.pay(asked.body.payment?.envelope);
    const first = await send(testbed.gateway, { ...call, proof, mandate: mandate.header });
    const other = await testbed.buyer.pay(asked.body.payment?.envelope);
    replies.push(asked, first, await send(testbed.gateway, { ...call, proof: other, mandate: mandate.header }));
    return first;
  };

  for (const channel of Object.keys(CHANNELS) as (keyof typeof CHANNELS)[])
    it(`are used, and refused, over ${channel}`, async () => {
      const report = ['market_report', 'Market report', INPUT, '0.01'] as const;
      assert.equal((await buy(channel, report)).code, undefined);
      assert.equal((await buy(channel, ['echo', 'Echo', { a: 1 }, '0.001'])).code, undefined);
      const failed = await buy(channel, ['failing_post', 'Failing', { status: 500 }, '0.001']);
      assert.equal(failed.code, 'BACKEND_ERROR');
      const spoilt: readonly (readonly [string, Wishes])[] = [
        [
          'constraint_unresolved',
          {
            constraints: [
              lineItems([{ id: 'line_1', acceptable: [{ id: 'market_report', title: 'Market report' }], quantity: 1 }]),
              plain({ type: CANARIES['an unknown constraint'], limit: 1 }),
            ],
          },
        ],
        ['unknown_key', { hands: { open: withHeader({ kid: CANARIES['an unknown key id'] }) } }],
        ['untrusted_issuer', { issuer: { key: testbed.mint.parties.stranger, iss: CANARIES['an untrusted issuer'] } }],
      ];
      for (const [reason, wishes] of spoilt)
        assert.equal((await buy(channel, report, wishes)).body.details?.['reason'], reason);
    });

  it('comes out nowhere: not in answers, events, receipts, log, metrics, nor in the store', async () => {
    const { gateway } = testbed;
    const stored = await everythingIn(redis.socketPath, 'password');
    const sinks: Sinks = {
      answers: replies.map(({ raw, headers }) => `${JSON.stringify([...headers])} ${raw}`).join('\n'),
      events: await (await gateway.operator('/api/events?limit=500')).text(),
      receipts: await (await gateway.operator('/api/receipts?limit=500')).text(),
      metrics: await readMetrics(gateway.managementUrl),
      log: gateway.logLines.join(''),
      Redis: stored.join('\n'),
    };
    assert.ok(presented.length >= 18);
    assert.ok(stored.some((line) => line.includes(':ap2:once')));
    assert.match(sinks['events'] ?? '', /authorization\.rejected/);
    const signatures = presented.flatMap(({ segments, paymentSegments }) =>
      [...segments, ...paymentSegments].map((segment) => (segment.split('~')[0] ?? '').split('.')[2] ?? ''),
    );
    const disclosures = presented.flatMap(({ segments }) => segments.flatMap((segment) => segment.split('~').slice(1)));
    const parts = [...signatures, ...disclosures, ...presented.map(({ header }) => header.slice(40, 200))].filter(
      Boolean,
    );
    assert.deepEqual(found({ ...CANARIES, ...named(parts) }, sinks), []);
    // The checkout is the gateway’s own and stands in a challenge; only its reader needs it.
    const { answers: _, ...kept } = sinks;
    const checkouts = presented.map(({ checkoutJwt }) => checkoutJwt.split('.')[2] ?? '');
    assert.deepEqual(found(named(checkouts), kept), []);
    assert.notDeepEqual(found(named(checkouts), sinks), [], 'it is where it has to be');
  });
});

function named(texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(texts.map((text, at) => [`part ${at}`, text]));
}
