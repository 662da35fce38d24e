import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { classify } from '../../src/backend/exchange.ts';

describe('what a status of the backend means', () => {
  for (const [statuses, relayStatuses, kind] of [
    [[200, 201, 202, 204, 206, 299], [], 'deliver'],
    [[300, 301, 302, 303, 304, 307, 308, 399], [302, 304], 'redirect'],
    [[400, 401, 402, 403, 404, 409, 429, 499], [], 'fail'],
    [[500, 502, 503, 599], [500, 503], 'fail'],
    [[404, 409], [404, 409], 'deliver'],
    [[402], [402], 'fail'],
    [[199, 600, 999], [199, 600, 999], 'fail'],
  ] as const) {
    for (const status of statuses) {
      const listed = relayStatuses.length === 0 ? '' : ` when relayStatuses is ${relayStatuses.join(', ')}`;
      it(`${status}: ${kind}${listed}`, () => assert.equal(classify(status, relayStatuses).kind, kind));
    }
  }

  for (const status of [304, 412, 416])
    it(`${status}: an answer to a precondition or a range, and to nothing else`, () => {
      assert.equal(classify(status, [], true).kind, 'deliver');
      assert.notEqual(classify(status, []).kind, 'deliver');
    });

  it('a precondition changes nothing about other statuses', () => {
    assert.deepEqual(
      [200, 301, 402, 404, 500].map((status) => classify(status, [], true).kind),
      ['deliver', 'redirect', 'fail', 'fail', 'fail'],
    );
  });
});
