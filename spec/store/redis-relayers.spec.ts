import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { redisBed } from './redis-bed.ts';

const ACCOUNTS = ['0xa0', '0xa1', '0xa2'];
const MS = 60_000;

const bed = redisBed();
const leases = () => bed.store.relayers ?? assert.fail('this store has leases');
const lease = (owner: string, accounts = ACCOUNTS) => leases().lease(owner, accounts, MS);
const key = (account: string): string => `{acg:shop}:relayer:${account}`;

describe('leases on relayer accounts', () => {
  it('go to one process each, the first account first, and to none when all are taken', async () => {
    assert.deepEqual(await Promise.all(['one', 'two', 'three', 'four'].map((owner) => lease(owner))), [
      ...ACCOUNTS,
      undefined,
    ]);
    await leases().release('two', ACCOUNTS);
    assert.equal(await lease('four'), '0xa1');
    assert.equal(await lease('two'), undefined);
  });

  it('are renewed by their process, which keeps its account when an earlier one is free', async () => {
    await bed.redis.pexpire(key('0xa2'), 1_000);
    await leases().release('one', ACCOUNTS);
    assert.equal(await lease('three'), '0xa2');
    assert.ok((await bed.redis.pttl(key('0xa2'))) > MS - 5_000);
    assert.equal(await lease('one'), '0xa0');
  });

  it('end by themselves, and then go to another process', async () => {
    assert.ok((await bed.redis.pttl(key('0xa0'))) > 0);
    await bed.redis.del(key('0xa0'));
    assert.equal(await lease('five'), '0xa0');
    assert.equal(await lease('one'), undefined);
  });

  it('are given back by their own process only', async () => {
    await leases().release('one', ACCOUNTS);
    assert.equal(await bed.redis.get(key('0xa0')), 'five');
    await leases().release('five', ACCOUNTS);
    await leases().release('four', ACCOUNTS);
    assert.deepEqual(await bed.redis.keys('*:relayer:*'), [key('0xa2')]);
  });
});
