import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { type Brought, bring, failure, read } from './bring.ts';

const INPUT = { city: 'Berlin' };

describe('an invalid key is INPUT_INVALID, before any money moves', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  /** `fetch` joins repeated fields and refuses strange ones: this sends what it is given. */
  const send = (id: string, input: unknown, headers: http.OutgoingHttpHeaders): Promise<Brought> =>
    new Promise((resolve, reject) => {
      const url = `${testbed.gateway.url}/api/resources/${id}/invoke`;
      const all = { 'content-type': 'application/json', ...headers };
      const request = http.request(url, { method: 'POST', headers: all, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const { statusCode = 0 } = response;
          resolve(read(new Response(Buffer.concat(chunks), { status: statusCode })));
        });
      });
      request.on('error', reject);
      request.end(JSON.stringify(input));
    });
  const wrong: readonly (readonly [string, http.OutgoingHttpHeaders])[] = [
    ['is empty', { 'idempotency-key': '' }],
    ['is longer than 255 characters', { 'idempotency-key': 'k'.repeat(256) }],
    ['has letters outside ASCII', { 'idempotency-key': Buffer.from('schl\u00fcssel').toString('latin1') }],
    ['has a tab', { 'idempotency-key': 'a\tb' }],
    ['came twice', { 'idempotency-key': ['one', 'two'] }],
    ['came twice, equal', { 'idempotency-key': ['one', 'one'] }],
  ];
  for (const [what, headers] of wrong)
    it(what, async () => {
      const proof = await testbed.proof('market_report', INPUT);
      const income = await testbed.income();
      const answer = await send('market_report', INPUT, { 'payment-signature': proof, ...headers });
      assert.equal(failure(answer, 400, 'INPUT_INVALID').details.reason, 'idempotency_key_malformed');
      assert.equal(await testbed.income(), income);
      assert.equal((await bring(testbed.gateway, 'market_report', INPUT, { proof })).status, 200, 'the proof is good');
      const free = await send('free_market_report', INPUT, headers);
      assert.equal(free.status, 200, 'and a free resource ignores it');
    });
});
