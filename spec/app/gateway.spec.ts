import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { after, before, describe, it } from 'node:test';
import type { Request, Response } from 'express';
import { openTestbed, type Testbed } from '../support/testbed.ts';

const FINISHED = 'http.server.response.finish';

describe('a paid call by its exact path', () => {
  let testbed: Testbed;
  const seen: { url: string; route: unknown; logged: boolean }[] = [];
  const note = (message: unknown): void => {
    const { request, response } = message as { request: Request; response: Response & { log?: object } };
    seen.push({ url: request.originalUrl, route: request.route?.path, logged: response.log !== undefined });
  };
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed?.close());

  it('passes the router of Express and pino-http, and has one line in the log', async () => {
    const { gateway } = testbed;
    const input = { city: 'Berlin' };
    const proof = await testbed.proof('market_report', input);
    const before = gateway.logLines.length;
    subscribe(FINISHED, note);
    const answer = await gateway.invoke('market_report', input, { 'payment-signature': proof });
    unsubscribe(FINISHED, note);
    assert.equal(answer.status, 200, await answer.text());
    const url = '/api/resources/market_report/invoke';
    assert.deepEqual(
      seen.filter((request) => request.url === url),
      [{ url, route: ['/api/resources/:id/invoke'], logged: true }],
    );
    const lines = gateway.logLines.slice(before).map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    const completed = lines.filter(({ msg }) => msg === 'request completed');
    assert.deepEqual(
      completed.map(({ path, status, outcome }) => ({ path, status, outcome })),
      [{ path: url, status: 200, outcome: 'delivered' }],
    );
  });
});
