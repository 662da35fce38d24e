import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import { type HostileFacilitator, relayTo, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { eventsUntil } from '../support/records.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { decode, encode, MUTATIONS, mutate, TOLERATED } from './proofs.ts';

const INPUT = { city: 'Berlin' };

describe('a proof is believed only when all of it is right', () => {
  let testbed: Testbed;
  let facilitator: HostileFacilitator;
  before(async () => {
    facilitator = await startHostileFacilitator('eip155:31337');
    // This facilitator approves everything, so whatever is refused here was refused by the gateway
    // itself.
    testbed = await openTestbed({ facilitator: { mode: 'remote', url: facilitator.url } });
  });
  after(async () => {
    await testbed.close();
    await facilitator.stop();
  });

  /** Calls about a payment; the readiness check asks for /supported at any time. */
  const payments = () => facilitator.calls.filter(({ path }) => path !== '/supported');

  for (const { field, reason, at, to } of MUTATIONS)
    it(`refuses ${field} with ${reason} and a fresh challenge, whatever the facilitator would answer`, async () => {
      const payload = decode(await testbed.proof('market_report', INPUT));
      mutate(payload, at, to);
      const asked = payments().length;
      const requestId = `mutation-${MUTATIONS.findIndex((row) => row.field === field)}`;
      const headers = { 'payment-signature': encode(payload), 'x-request-id': requestId };
      const answer = await testbed.gateway.invoke('market_report', INPUT, headers);
      const body = (await answer.json()) as {
        status: string;
        code: string;
        error: { message: string };
        payment: { envelope: { error: string } };
      };
      assert.deepEqual([answer.status, body.status, body.code], [402, 'payment-required', 'PAYMENT_REQUIRED']);
      assert.partialDeepStrictEqual(body.error, { code: 'PAYMENT_INVALID', reason, retryable: false });
      const { message } = body.error;
      assert.ok(message.startsWith(`The payment proof was refused: ${reason} (`), message);
      if (reason === 'invalid_payload') assert.ok(message.includes(`(${at} `), message);
      assert.equal(body.payment.envelope.error, reason);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      const document = JSON.parse(
        Buffer.from(answer.headers.get('payment-required') ?? '', 'base64').toString(),
      ) as object;
      assert.deepEqual(document, body.payment.envelope);
      assert.equal(payments().length, asked, 'the facilitator was not asked');
      const events = await eventsUntil(testbed.gateway, requestId, 'payment.required');
      assert.deepEqual(
        events.map((event) => event.type),
        ['resource.requested', 'payment.rejected', 'payment.required'],
      );
      assert.deepEqual(events[1]?.data, { reason });
    });

  describe('a proof that is spelled otherwise', () => {
    let official: Facilitator;
    before(async () => {
      official = await startFacilitator(testbed.chain);
      facilitator.script({ verify: relayTo(official.url), settle: relayTo(official.url) });
    });
    after(async () => {
      facilitator.script({});
      await official.stop();
    });

    for (const { field, at, to } of TOLERATED)
      it(`buys with ${field}, and the facilitator never sees it`, async () => {
        const payload = decode(await testbed.proof('market_report', INPUT));
        mutate(payload, at, to);
        const before = facilitator.calls.length;
        const answer = await testbed.gateway.invoke('market_report', INPUT, { 'payment-signature': encode(payload) });
        assert.equal(answer.status, 200, await answer.text());
        const sent = facilitator.calls.slice(before).filter(({ path }) => path !== '/supported');
        assert.deepEqual(
          sent.map(({ path }) => path),
          ['/verify', '/settle'],
        );
        for (const { body } of sent) {
          assert.doesNotMatch(JSON.stringify(body), /surprise|unknown-member|null/);
        }
      });

    // No base64 has 8,193 characters.
    for (const [length, status] of [
      [8_192, 200],
      [8_194, 402],
    ] as const)
      it(`of ${length} bytes is answered ${status}`, async () => {
        const json = Buffer.from(await testbed.proof('market_report', INPUT), 'base64').toString();
        const spelled = Buffer.from(json.padEnd(Math.floor((length * 3) / 4))).toString('base64');
        const proof = spelled.replace(/=+$/, '');
        assert.equal(proof.length, length);
        const answer = await testbed.gateway.invoke('market_report', INPUT, { 'payment-signature': proof });
        assert.equal(answer.status, status);
      });
  });

  it('refuses a header that came twice, and one over 8 KiB', async () => {
    const proof = await testbed.proof('market_report', INPUT);
    const url = `${testbed.gateway.url}/api/resources/market_report/invoke`;
    const twice = new Headers({ 'content-type': 'application/json' });
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
});
