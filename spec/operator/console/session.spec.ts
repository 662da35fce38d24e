import assert from 'node:assert/strict';
import { after, before, describe, it, mock } from 'node:test';
import { openGateway } from '../../../src/operator/console/gateway.js';
import { createSession, UNDELIVERED_EVERY_MS } from '../../../src/operator/console/session.js';
import { MAX_FAILED_ATTEMPTS } from '../../../src/server/limits/rates.ts';
import { OPERATOR_TOKEN } from '../../support/gateway.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { buy, event, oldReceipt } from './sample-calls.ts';

describe('what the console learns of a gateway', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  const asked: string[] = [];
  const openSession = () => {
    const ask: typeof fetch = (url, init) => {
      asked.push(String(url).slice(testbed.gateway.url.length));
      return fetch(url, init);
    };
    return createSession(openGateway(OPERATOR_TOKEN, { base: new URL(`${testbed.gateway.url}/`), ask }));
  };
  const sum = (session: ReturnType<typeof openSession>) => session.receipts.paid().length;

  it('a look takes events, receipts, readiness and names; the next one only what is new', async () => {
    const session = openSession();
    await buy(testbed, 'market_report', { city: 'Berlin' });
    await session.look();
    assert.deepEqual(
      [
        session.calls.list().filter(({ outcome }) => outcome === 'delivered').length,
        sum(session),
        session.facts.readiness?.ready,
      ],
      [1, 1, true],
    );
    assert.deepEqual(
      [session.facts.merchant.name, session.facts.names.get('price_list')],
      ['Market Shop', 'Price list'],
    );
    asked.length = 0;
    await buy(testbed, 'price_list', {});
    await session.look();
    assert.equal(sum(session), 2);
    assert.deepEqual(asked.sort(), ['/api/events?limit=100', '/api/receipts?limit=100', '/ready']);
  });

  it('more than a page of new entries is followed to what is known', async () => {
    const session = openSession();
    await session.look();
    const known = session.receipts.size();
    await testbed.gateway.store.feed.append(
      Array.from({ length: 250 }, (_, at) => event('resource.requested', { requestId: `req-many-${at}` })),
    );
    await testbed.gateway.store.receipts.write(
      Array.from({ length: 250 }, (_, at) => oldReceipt(at, { delivered: true }, -1_000)),
    );
    await session.look();
    assert.equal(session.receipts.size(), known + 250);
    assert.equal(session.calls.list().filter(({ requestId }) => requestId.startsWith('req-many-')).length, 250);
    assert.equal(session.hasGap(), false);
  });

  it('more than it follows is a gap', async () => {
    const session = openSession();
    await session.look();
    await testbed.gateway.store.receipts.write(
      Array.from({ length: 1_001 }, (_, at) => oldReceipt(at, { delivered: true }, -60_000)),
    );
    await session.look();
    assert.equal(session.hasGap(), true);
  });

  it('receipts before the first page are read on demand, page by page', async () => {
    const session = openSession();
    await session.look();
    assert.deepEqual([session.receipts.size(), session.hasOlder()], [500, true]);
    await session.readOlder();
    assert.equal(session.receipts.size(), 1_000);
    while (session.hasOlder()) await session.readOlder();
    const all = session.receipts.size();
    await session.readOlder();
    assert.equal(session.receipts.size(), all);
    assert.ok(all > 1_250, 'to the first one');
  });

  it('an undelivered payment of any age is found, and leaves the list when it has been delivered after all', async (t) => {
    const forgotten = oldReceipt(1, { metadata: { refundDue: true } }, 90 * 3_600_000);
    const collected = oldReceipt(2, {}, 20 * 3_600_000);
    const { receipts } = testbed.gateway.store;
    await receipts.write([forgotten, collected]);
    const session = openSession();
    await session.look();
    const due = () => session.undelivered.all().map(({ requestId }) => requestId);
    assert.deepEqual(due().sort(), ['req-old-1', 'req-old-2']);
    assert.equal(session.receipts.knows(forgotten.id), false, 'the sums stay those of the newest receipts');
    await receipts.write([{ ...collected, delivered: true, deliveredAt: new Date().toISOString() }]);
    await session.look();
    assert.equal(due().length, 2, 'the list costs the store a search: it is not read on every look');
    const now = Date.now() + UNDELIVERED_EVERY_MS;
    t.mock.method(Date, 'now', () => now);
    await session.look();
    mock.restoreAll();
    assert.deepEqual(due(), ['req-old-1']);
  });

  it('a wrong token costs one try; nothing else is asked', async () => {
    const wrong: string[] = [];
    const ask: typeof fetch = (url, init) => {
      wrong.push(String(url).slice(testbed.gateway.url.length));
      return fetch(url, init);
    };
    const signIn = () =>
      createSession(openGateway('wrong-token', { base: new URL(`${testbed.gateway.url}/`), ask })).look();
    for (let tries = 0; tries < MAX_FAILED_ATTEMPTS; tries += 1) await assert.rejects(signIn(), { kind: 'token' });
    await assert.rejects(signIn(), {
      kind: 'guesses',
      message: /^Too many wrong tokens from here; wait \d+ s\. The right one still works\.$/,
    });
    assert.deepEqual(wrong, new Array(MAX_FAILED_ATTEMPTS + 1).fill('/api/events?limit=500'));
    const right = openSession();
    await right.look();
    assert.ok(right.calls.list().length > 0, 'the right one still works');
  });

  it('what is ready is not known while the gateway does not answer, and known again when it does', async () => {
    let away = false;
    const ask: typeof fetch = (url, init) => (away ? Promise.reject(new TypeError('cut')) : fetch(url, init));
    const session = createSession(openGateway(OPERATOR_TOKEN, { base: new URL(`${testbed.gateway.url}/`), ask }));
    const answered: boolean[] = [session.facts.readinessAnswered];
    for (away of [false, true, false]) {
      await session.look().catch(() => undefined);
      answered.push(session.facts.readinessAnswered);
    }
    assert.deepEqual(answered, [false, true, false, true]);
  });

  it('what can be read is taken although something else fails', async () => {
    const ask: typeof fetch = (url, init) =>
      String(url).includes('/api/events') ? Promise.reject(new TypeError('cut')) : fetch(url, init);
    const session = createSession(openGateway(OPERATOR_TOKEN, { base: new URL(`${testbed.gateway.url}/`), ask }));
    await assert.rejects(session.look(), { kind: 'away' });
    assert.deepEqual(
      [session.calls.list().length, session.receipts.size(), session.facts.readiness?.ready],
      [0, 500, true],
    );
  });
});
