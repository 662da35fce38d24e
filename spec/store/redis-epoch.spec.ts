import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import type { MandateClaim, RegisterEpoch } from '../../src/mandates/register.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { VERSION_LENGTH } from '../../src/store/port/commit.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { claimOf, useOf } from '../mandates/claims.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/redis-replicas.ts';
import { refused, reserveWith } from './contract-mandates.ts';
import { REDIS_LIMITS, redisBed } from './redis-bed.ts';

const RUNBOOK = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8');

const bed = redisBed();
let merchantId: string;
let epochKey: string;
const warnings: string[] = [];
const log = { info: () => undefined, warn: (_: object, message: string) => void warnings.push(message) };

beforeEach(() => {
  merchantId = randomUUID();
  epochKey = `{acg:${merchantId}}:ap2:epoch`;
  warnings.length = 0;
});

async function open(t: TestContext): Promise<Store> {
  const store = await openRedisStore({ url: bed.server.url, merchantId, limits: REDIS_LIMITS, log });
  t.after(() => store.close());
  return store;
}

const epoch = async (): Promise<RegisterEpoch> =>
  JSON.parse(((await bed.redis.get(epochKey)) ?? assert.fail('no epoch')).slice(VERSION_LENGTH));
const redisNow = async () => {
  const [seconds, micros] = await bed.redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
};
const losses = () => warnings.filter((message) => message.startsWith('the store lost its data'));
/** Writes the epoch as the runbook says. */
async function write({ born, openFrom }: RegisterEpoch): Promise<void> {
  const [, recipe = ''] =
    /run="spec\/store\/redis-epoch.spec.ts"\n([^`]*)```/.exec(RUNBOOK) ?? assert.fail('no recipe');
  const [, set = ''] = recipe.replaceAll('MERCHANT', merchantId).split('redis-cli SET ');
  const words = execFileSync('sh', ['-c', `printf '%s\\n' ${set}`], { encoding: 'utf8' });
  const [key = '', value = ''] = words.replace('1800000000000', `${born}`).split('\n');
  await bed.redis.set(key, value.replace('"openFrom":0', `"openFrom":${openFrom}`));
}
/** The merchant's keys alone: other tests have theirs on this server. */
const flush = async () => {
  const keys = await bed.redis.keys(`{acg:${merchantId}}:*`);
  if (keys.length > 0) await bed.redis.del(...keys);
};

/** Both ways into the register. */
const WAYS: Readonly<Record<'paid' | 'free', (store: Store, claim: MandateClaim) => Promise<string>>> = {
  paid: async ({ ledger }, claim) => {
    const answer = refused(await reserveWith(ledger, claim));
    return answer === 'granted' ? 'reserved' : answer;
  },
  free: async ({ mandates }, claim) => {
    const used = await mandates.reserve(randomUUID(), claim);
    return used.kind === 'refused' ? used.reason : used.kind;
  },
};
const old = (age = 3_600) => claimOf(undefined, { age: 0, open: [{ ...useOf(randomUUID(), {}), age }] });

describe('the epoch of a register in Redis', () => {
  it('begins as the store is opened, and stays: what comes at once is accepted, open mandates whatever their age', async (t) => {
    const start = await redisNow();
    const store = await open(t);
    const { born, openFrom } = await epoch();
    // A second before: clocks differ a little, and other signers use whole seconds.
    assert.ok(born >= start - 1_000 && born <= (await redisNow()) - 1_000 && openFrom === 0, `${born} ${openFrom}`);
    for (const use of Object.values(WAYS)) {
      assert.equal(await use(store, old()), 'reserved');
      assert.equal(await use(store, claimOf(undefined, { age: 60 })), 'replayed');
    }
    await store.check();
    await open(t);
    assert.deepEqual(await epoch(), { born, openFrom: 0 });
    assert.equal(await bed.redis.pttl(epochKey), -1);
    assert.deepEqual(losses(), []);
  });

  for (const [way, use] of Object.entries(WAYS)) {
    it(`${way}: a mandate that was used before a loss is refused, whether the check or a reservation finds it first`, async (t) => {
      const store = await open(t);
      for (const checkedFirst of [true, false]) {
        const claim = old(0);
        assert.equal(await use(store, claim), 'reserved');
        await flush();
        const lost = await redisNow();
        if (checkedFirst) assert.equal((await store.check()).status, 'ok');
        const later = { ...claim, age: 1 };
        assert.equal(await use(store, later), 'replayed');
        assert.equal(await use(store, later), 'replayed');
        const { born, openFrom } = await epoch();
        assert.ok(born >= lost && openFrom === born, `${born} ${openFrom} ${lost}`);
        await until(async () => (await redisNow()) > born + 1, 'the clock stands');
        assert.equal(await use(store, old(3_600)), 'open_mandate_spent');
        assert.equal(await use(store, old(0)), 'reserved');
        await store.check();
        assert.equal(losses().length, checkedFirst ? 1 : 2);
      }
    });
  }

  it('is that of a loss for a gateway that has seen it before, also when another one began it anew meanwhile', async (t) => {
    const store = await open(t);
    await flush();
    const starting = await open(t);
    const { born, openFrom } = await epoch();
    assert.equal(openFrom, 0);
    await store.check();
    const after = await epoch();
    assert.ok(after.born > born && after.openFrom === after.born);
    assert.equal(await WAYS.free(starting, old()), 'open_mandate_spent');
    assert.equal(losses().length, 1);
  });

  it('is set by an operator, as the runbook says, to accept what is older or to refuse it', async (t) => {
    const store = await open(t);
    await flush();
    await store.check();
    assert.equal(await WAYS.paid(store, old()), 'open_mandate_spent');
    await write({ ...(await epoch()), openFrom: 0 });
    await store.check();
    assert.equal(await WAYS.paid(store, old()), 'reserved');
    await write({ born: 0, openFrom: 0 });
    await store.check();
    assert.equal(await WAYS.paid(store, claimOf(undefined, { age: 60 })), 'reserved');
    assert.deepEqual(await epoch(), { born: 0, openFrom: 0 });
    await write({ born: 0, openFrom: await redisNow() });
    assert.equal(await WAYS.paid(store, old()), 'open_mandate_spent');
    assert.equal(losses().length, 1);
  });

  it('refuses every mandate where it is damaged', async (t) => {
    const store = await open(t);
    await bed.redis.set(epochKey, 'damaged');
    for (const use of Object.values(WAYS))
      await assert.rejects(use(store, claimOf()), (thrown) => {
        return thrown instanceof StoreError && /ap2:epoch/.test(String(thrown.cause));
      });
    assert.equal((await store.check()).status, 'unreachable');
  });

  it('begins anew at the connection to a server that restarted without its data', async (t) => {
    const server = await startRedis({ args: ['--appendonly', 'no', '--save', ''] });
    t.after(() => server.stop());
    const store = await openRedisStore({ url: server.url, merchantId, limits: REDIS_LIMITS, log });
    t.after(() => store.close());
    const used = claimOf(undefined, { age: 0 });
    assert.equal(await WAYS.free(store, used), 'reserved');
    const start = performance.now();
    await server.kill();
    await server.restart();
    await until(async () => losses().length > 0, 'the loss is not logged');
    const age = (performance.now() - start) / 1_000;
    assert.equal(await WAYS.free(store, { ...used, age }), 'replayed');
    assert.equal(await WAYS.paid(store, old()), 'open_mandate_spent');
    assert.equal(await WAYS.paid(store, old(0)), 'reserved');
  });
});
