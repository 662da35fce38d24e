import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { ask } from './ask.ts';

const ROUNDS = 20;

describe('events and receipts right after an answer', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  it('are read at once, although they are written after the call', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const requestId = `round-${round}`;
      const headers = { 'content-type': 'application/json', 'x-request-id': requestId };
      const { status } = await ask(testbed.gateway.url, { path: '/api/resources/cities/invoke', headers, body: '{}' });
      assert.equal(status, 200);
      const [events, receipts] = await Promise.all(
        ['events', 'receipts'].map(async (books) => {
          const answer = await testbed.gateway.operator(`/api/${books}?requestId=${requestId}`);
          return ((await answer.json()) as Record<string, readonly object[]>)[books];
        }),
      );
      assert.deepEqual([events?.length, receipts?.length], [3, 1], requestId);
    }
  });
});
