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
});
