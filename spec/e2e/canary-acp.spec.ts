import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { CANARIES, CANCEL, COMPLETE, ECHOED, FOR_THE_MERCHANT, UPDATE } from './canary-buyer.ts';
import { startWatchedGateway, type WatchedGateway } from './canary-checkouts.ts';
import { QUOTATIONS, startQuotingMerchant } from './canary-merchant.ts';
import { leaveInTheMiddle, sendRefused } from './canary-refusals.ts';
import { everythingIn, filesIn, found, type Sinks } from './canary-sinks.ts';

const PASSWORD = CANARIES['the password of Redis'];
const STORES = ['Redis', 'SQLite'] as const;
const ANSWERS = 'what was answered';

describe('card data in checkouts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'acg-canary-acp-'));
  let redis: TestRedis;
  let backend: Awaited<ReturnType<typeof startQuotingMerchant>>;
  let gateways: Readonly<Record<(typeof STORES)[number], WatchedGateway>>;
  before(async () => {
    // What is compressed could not be searched.
    redis = await startRedis({ args: ['--requirepass', PASSWORD, '--rdbcompression', 'no'] });
    backend = await startQuotingMerchant(CANARIES["a secret in the merchant's failure"]);
    gateways = {
      Redis: await startWatchedGateway(backend, { storage: { redis: { url: redis.url } }, password: PASSWORD }),
      SQLite: await startWatchedGateway(backend, { storage: { sqlite: { path: join(folder, 'gateway.db') } } }),
    };
  });
  after(async () => {
    for (const watched of Object.values(gateways ?? {})) await watched.remove();
    await backend?.stop();
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const store of STORES)
    describe(`over ${store}`, () => {
      it('buys, gets the same answer again, and is refused what contradicts it', async () => {
        const { open, post, send } = gateways[store];
        const session = await open();
        await post(session, UPDATE, 'update', 200);
        backend.misbehave({
          kind: 'document',
          edit: (document) => ({
            ...document,
            messages: [
              { type: 'info', content_type: 'plain', content: ECHOED['a message of the merchant'] },
              { type: 'info', content_type: 'plain', content: `card ${'x'.repeat(3_000)}` },
            ],
          }),
        });
        const complete = `${session}/complete`;
        const sold = await post(complete, COMPLETE, 'complete', 200);
        const again = await post(complete, COMPLETE, 'complete', 200);
        assert.equal(again.text, sold.text);
        assert.equal(again.headers['idempotent-replayed'], 'true');
        await post(complete, { ...COMPLETE, order_notes: 'other' }, 'complete', 422, 'idempotency_conflict');
        await post(complete, COMPLETE, 'another', 409, 'checkout_session_conflict');
        await post(`${session}/cancel`, CANCEL, 'too late', 405, 'checkout_session_not_cancelable');
        await post(`${await open()}/cancel`, CANCEL, 'cancel', 200);
        assert.equal((await send({ method: 'GET', path: session })).status, 200);
      });

      it('is held up while a call on the same session runs', async () => {
        const { open, post } = gateways[store];
        const complete = `${await open()}/complete`;
        const { promise, resolve } = Promise.withResolvers<void>();
        backend.misbehave({ kind: 'wait', acts: 'before', until: promise });
        const arrived = backend.arrived();
        const first = post(complete, COMPLETE, 'held', 200);
        await arrived;
        await post(complete, COMPLETE, 'held', 409, 'idempotency_in_flight');
        await post(complete, COMPLETE, 'held by another', 409, 'checkout_session_conflict');
        resolve();
        await first;
      });

      for (const [name, [quotation, status, code]] of Object.entries(QUOTATIONS))
        it(`does not come out of a backend that quotes it in ${name}`, async () => {
          const { open, post } = gateways[store];
          const complete = `${await open()}/complete`;
          backend.quote(quotation);
          await post(complete, COMPLETE, name, status, code);
          // A kept answer is repeated; an unknown end is looked up.
          await post(complete, COMPLETE, name, status < 500 ? status : 200);
        });

      it('does not come out of a backend that completes and answers a failure', async () => {
        const { open, post } = gateways[store];
        const path = await open();
        backend.misbehave({ kind: 'hang', acts: true }, { operation: 'completeCheckoutSession' });
        await post(`${path}/complete`, COMPLETE, 'hanging', 504, 'service_unavailable');
        await post(`${path}/complete`, COMPLETE, 'hanging', 200);
        const other = await open();
        backend.misbehave({ kind: 'reset', acts: true }, { operation: 'completeCheckoutSession' });
        await post(`${other}/complete`, COMPLETE, 'reset', 502, 'processing_error');
        await post(`${other}/complete`, COMPLETE, 'reset', 200);
      });

      it('does not come out of any refusal of the gateway', () => sendRefused(gateways[store]));

      it('does not come out of a call that breaks off in its body', () => leaveInTheMiddle(gateways[store]));
    });

  it('does not come out when Redis refuses its clients, before or during a call', async () => {
    const { open, post } = gateways.Redis;
    const complete = `${await open()}/complete`;
    const lose = async (): Promise<void> => {
      await admin.config('SET', 'requirepass', 'another-password');
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    };
    const admin = new Redis({ path: redis.socketPath, password: PASSWORD });
    try {
      const { promise, resolve } = Promise.withResolvers<void>();
      backend.misbehave({ kind: 'wait', acts: 'before', until: promise });
      const arrived = backend.arrived();
      const first = post(complete, COMPLETE, 'unstored', 200);
      await arrived;
      await lose();
      resolve();
      await first;
      await post(complete, COMPLETE, 'locked out', 503, 'service_unavailable');
    } finally {
      await admin.config('SET', 'requirepass', PASSWORD);
      admin.disconnect();
    }
  });

  it('does not come out when Redis is full', async () => {
    const { open, post } = gateways.Redis;
    const admin = new Redis({ path: redis.socketPath, password: PASSWORD });
    const complete = `${await openedOnceBack(open)}/complete`;
    await admin.config('SET', 'maxmemory', '1');
    await post(complete, COMPLETE, 'no room', 503, 'service_unavailable');
    await admin.config('SET', 'maxmemory', '0');
    admin.disconnect();
  });

  it('does not come out when the backend is away', async () => {
    const paths = await Promise.all(STORES.map((store) => gateways[store].open()));
    await backend.stop();
    for (const [at, store] of STORES.entries())
      await gateways[store].post(`${paths[at]}/complete`, COMPLETE, 'away', 502, 'processing_error');
  });

  it('is where it is meant to be, and the search finds it there', () => {
    const calls = backend.calls.map(({ rawHeaders, body }) => `${rawHeaders.join(' ')} ${body}`).join('\n');
    for (const name of FOR_THE_MERCHANT)
      assert.notDeepEqual(found({ [name]: CANARIES[name] }, { calls }), [], `the merchant did not get ${name}`);
    const { 'an unknown token': token, 'a cookie': cookie, 'an unknown field': field } = CANARIES;
    const key = ECHOED['an idempotency key'];
    assert.deepEqual(found({ token, cookie, field, key }, { calls }), []);
  });

  it('comes out nowhere', async () => {
    const admin = new Redis({ path: redis.socketPath, password: PASSWORD });
    await admin.save();
    const value = (await everythingIn(redis.socketPath, PASSWORD)).join('\n');
    admin.disconnect();
    assert.match(value, /:acp:/);
    const sinks: Record<string, string> = { 'keys and values in Redis': value };
    const answers: Record<string, string> = {};
    for (const store of STORES) {
      const { answers: answered, end } = gateways[store];
      answers[`${ANSWERS} over ${store}`] = answered();
      // SQLite moves its log into the file when it is closed, so both are read before as well.
      if (store === 'SQLite') Object.assign(sinks, named('open', await filesIn(folder)));
      for (const [name, text] of Object.entries(await end())) sinks[`${name} over ${store}`] = text;
    }
    Object.assign(sinks, named('at rest', await filesIn(dirname(redis.socketPath))));
    Object.assign(sinks, named('at rest', await filesIn(folder)));
    for (const name of ['gateway.db open', 'gateway.db-wal open', 'gateway.db at rest', 'dump.rdb at rest'])
      assert.ok(name in sinks, `${name} is among ${Object.keys(sinks)}`);
    assert.ok(Object.keys(sinks).some((name) => name.includes('.aof')));
    for (const [name, text] of Object.entries(sinks)) assert.ok(text.length > 20, `${name} has something in it`);
    assert.deepEqual(found({ ...CANARIES, ...ECHOED }, sinks), []);
    assert.deepEqual(found(CANARIES, answers), []);
    assert.notDeepEqual(found(ECHOED, answers), []);
  });
});

function named(how: string, files: ReadonlyMap<string, string>): Sinks {
  return Object.fromEntries([...files].map(([name, text]) => [`${name} ${how}`, text]));
}

/** Opens a session as soon as the store is back: until then calls are turned away. */
async function openedOnceBack(open: () => Promise<string>): Promise<string> {
  for (;;) {
    const path = await open().catch((refused: unknown) => {
      if (!String(refused).includes('service_unavailable')) throw refused;
      return undefined;
    });
    if (path !== undefined) return path;
  }
}
