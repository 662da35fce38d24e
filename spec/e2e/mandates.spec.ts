import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { eventsUntil, receiptWhen } from '../support/records.ts';
import { isEnvelope } from './ask.ts';
import { CHANNELS } from './mandate-channels.ts';
import { INPUT, leaf, type MandateTestbed, openMandateTestbed, PRICE_UNITS, TOOL } from './mandate-testbed.ts';

const isChallenge = new Ajv2020({ strict: false, validateFormats: false }).compile(
  JSON.parse(readFileSync(new URL('../../schemas/payment-required.schema.json', import.meta.url), 'utf8')) as object,
);

for (const [channel, send] of Object.entries(CHANNELS))
  describe(`a resource that needs a mandate, over ${channel}`, () => {
    let testbed: MandateTestbed;
    before(async () => {
      testbed = await openMandateTestbed(send);
    });
    after(() => testbed?.close());

    it('one 402 holds all: payment and mandate in one round trip, one settlement, a receipt to show', async () => {
      const asked = await testbed.challenged();
      const schema = {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: { required: { type: 'boolean' }, version: { type: 'string' } },
        required: ['required', 'version'],
      };
      assert.deepEqual(asked.payment?.envelope.extensions?.['ap2'], {
        info: { required: true, version: '0.2.0' },
        // Terse, where a model pays for each token.
        schema: channel === 'mcp' ? {} : schema,
      });
      if (channel === 'http') assert.ok(isChallenge(asked), JSON.stringify(isChallenge.errors));
      const [before, earned] = [await testbed.buyer.balance(), await testbed.income()];
      const mandate = testbed.mandateFor(asked, testbed.pays());
      const proof = await testbed.proofFor(asked);
      const bought = await testbed.send({ resourceId: TOOL, input: INPUT, proof, mandate: mandate.header });
      assert.equal(bought.code, undefined, bought.raw);
      assert.equal(bought.body['city'], 'Berlin');
      assert.equal(before - (await testbed.buyer.balance()), PRICE_UNITS);
      assert.equal((await testbed.income()) - earned, PRICE_UNITS);

      const receipt = await receiptWhen(testbed.gateway, bought.requestId, true);
      const claims = await testbed.receiptOf(bought);
      assert.deepEqual(
        [claims['status'], claims['result'], claims['reference'], claims['order_id'], claims['iss']],
        ['Success', 'success', leaf(mandate), bought.requestId, testbed.profile.issuer],
      );
      assert.equal(claims['network_confirmation_id'], receipt.payment?.externalReference);
      assert.deepEqual(receipt.authorization, {
        method: 'ap2',
        reference: leaf(mandate),
        metadata: {
          mandateIssuer: 'https://agents.provider.example',
          checkoutIssuer: testbed.profile.issuer,
          checkoutId: mandate.jti,
        },
      });
      const events = await eventsUntil(testbed.gateway, bought.requestId, 'resource.delivered');
      assert.deepEqual(
        events.map(({ type }) => type),
        [
          'resource.requested',
          'authorization.verified',
          'payment.verified',
          'payment.settled',
          'backend.called',
          'resource.delivered',
        ],
      );
      const { data } = events.find(({ type }) => type === 'authorization.verified') ?? {};
      assert.deepEqual(Object.keys(data ?? {}).sort(), ['issuer', 'mandateId', 'method', 'mode', 'reference']);
      assert.deepEqual([data?.['mode'], data?.['reference']], ['autonomous', leaf(mandate)]);
    });

    it('a good payment without a mandate is refused before money moves, and the fresh checkout suits it', async () => {
      const proof = await testbed.proofFor(await testbed.challenged());
      const before = await testbed.buyer.balance();
      const refused = await testbed.send({ resourceId: TOOL, input: INPUT, proof });
      assert.equal(refused.code, 'AUTHORIZATION_REQUIRED', refused.raw);
      assert.ok(isEnvelope(refused.body), JSON.stringify(isEnvelope.errors));
      assert.deepEqual(refused.body.details, {
        reason: 'mandate_required',
        required: ['ap2'],
        missing: ['ap2'],
      });
      assert.equal(refused.receipt, undefined);
      const events = await eventsUntil(testbed.gateway, refused.requestId, 'authorization.rejected');
      assert.deepEqual(events.at(-1)?.data, { method: 'ap2', reason: 'mandate_required', methods: ['ap2'] });
      assert.equal(await testbed.buyer.balance(), before);

      const mandate = testbed.mandateFor(refused.body, testbed.pays()).header;
      const bought = await testbed.send({ resourceId: TOOL, input: INPUT, proof, mandate });
      assert.equal(bought.code, undefined, bought.raw);
      assert.equal(before - (await testbed.buyer.balance()), PRICE_UNITS);
    });

    it('a mandate without a payment is asked to pay', async () => {
      const mandate = testbed.mandateFor(await testbed.challenged(), testbed.pays()).header;
      const asked = await testbed.send({ resourceId: TOOL, input: INPUT, mandate });
      assert.equal(asked.code, 'PAYMENT_REQUIRED', asked.raw);
      assert.ok(asked.body.authorization);
    });

    it('a free resource asks for the mandate alone, and takes it once', async () => {
      const call = { resourceId: 'free_market_report', input: INPUT };
      const asked = await testbed.send(call);
      assert.equal(asked.code, 'AUTHORIZATION_REQUIRED', asked.raw);
      assert.equal(asked.body.authorization?.required[0]['paymentMandate'], 'none');
      const purchase = testbed.purchaseOf('free_market_report', 'Market report', INPUT);
      const mandate = testbed.mandateFor(asked.body, { purchase });
      const delivered = await testbed.send({ ...call, mandate: mandate.header });
      assert.equal(delivered.code, undefined, delivered.raw);
      const claims = await testbed.receiptOf(delivered);
      assert.deepEqual(
        [claims['status'], claims['order_id'], claims['network_confirmation_id']],
        ['Success', delivered.requestId, undefined],
      );
      const receipt = await receiptWhen(testbed.gateway, delivered.requestId, true);
      assert.equal(receipt.authorization?.reference, leaf(mandate));
      const events = await eventsUntil(testbed.gateway, delivered.requestId, 'resource.delivered');
      assert.deepEqual(
        events.map(({ type }) => type),
        ['resource.requested', 'authorization.verified', 'backend.called', 'resource.delivered'],
      );
      const second = await testbed.send({ ...call, mandate: mandate.header });
      assert.deepEqual([second.code, second.body.details?.['reason']], ['AUTHORIZATION_REPLAYED', 'replayed']);
      // The caller chooses the id of a request: an equal id does not give it the use that another
      // call reserved.
      const named = { ...call, mandate: mandate.header, headers: { 'x-request-id': delivered.requestId } };
      assert.equal((await testbed.send(named)).code, 'AUTHORIZATION_REPLAYED');
    });
  });
