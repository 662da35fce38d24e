import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Commit, createTransact } from '../../src/store/port/commit.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { modelCommits } from './model.ts';

const BEGAN = 1_800_000_000_000;

/** A model whose calls are listed, and which may be changed before each commit. */
function bed() {
  let now = BEGAN;
  const model = modelCommits(() => now);
  const calls: string[] = [];
  let writes = 0;
  const self = {
    model,
    calls,
    /** Writes as another process does. */
    write(key: string, value: string | null) {
      writes += 1;
      const version = `other-${writes}`.padEnd(16);
      return model.commit({ documents: [{ key, value, version }] }, 'now');
    },
    pass(ms: number) {
      now += ms;
    },
    /** What happens before a commit reaches the store. */
    beforeCommit: async (_commit: Commit): Promise<unknown> => undefined,
    transact: createTransact({
      ...model,
      async commit(commit, how) {
        await self.beforeCommit(commit);
        const committed = await model.commit(commit, how);
        calls.push(`commit ${committed.kind}`);
        return committed;
      },
      async read(keys) {
        calls.push(`read ${keys.join(' ')}`);
        return model.read(keys);
      },
    }),
    /** Sets `key` to what it was and one letter more. */
    append: (key: string, letter: string, guessed = [key]) =>
      self.transact(guessed, (read) => {
        const answer = `${read(key)?.value ?? ''}${letter}`;
        return { answer, changes: { documents: [{ key, value: answer, made: { answer } }] } };
      }),
  };
  return self;
}

describe('a transaction', () => {
  it('commits at once on a right guess: absent, or what this process wrote last', async () => {
    const { append, calls } = bed();
    assert.deepEqual([await append('a', 'x'), await append('a', 'y')], ['x', 'xy']);
    assert.deepEqual(calls, ['commit done', 'commit done']);
  });

  it('decides again on what a conflict brings, without another read', async () => {
    const { append, write, calls } = bed();
    await write('a', 'o');
    assert.equal(await append('a', 'x'), 'ox');
    assert.deepEqual(calls, ['commit conflict', 'commit done']);
  });

  it('trusts no guess for an answer that changes nothing', async () => {
    const { transact, write, calls } = bed();
    await write('a', 'o');
    assert.equal(await transact(['a'], (read) => ({ answer: read('a')?.value })), 'o');
    assert.deepEqual(calls, ['read a']);
  });

  it('reads a key that was not guessed, with all that it knows, and decides anew', async () => {
    const { transact, write, calls } = bed();
    await write('a', 'to b');
    await write('b', 'found');
    const answer = await transact(['a'], (read) => ({
      answer: read('a')?.value === 'to b' ? read('b')?.value : 'nothing',
      changes: { documents: [{ key: 'a', value: 'done' }] },
    }));
    assert.equal(answer, 'found');
    assert.deepEqual(calls, ['commit conflict', 'read a b', 'commit done']);
  });

  it('decides again when anything changed that it read, and writes what it did not read whatever is there', async () => {
    const one = bed();
    const copy = () =>
      one.transact(['from'], (read) => ({
        answer: read('from')?.value,
        changes: { documents: [{ key: 'to', value: 'copy' }] },
      }));
    await one.write('to', 'anything');
    assert.equal(await copy(), undefined);
    one.beforeCommit = async () => {
      one.beforeCommit = async () => undefined;
      await one.write('from', 'new');
      await one.write('to', 'other');
    };
    assert.equal(await copy(), 'new');
    assert.deepEqual(one.calls, ['commit done', 'commit conflict', 'commit done']);
    assert.equal((await one.model.read(['to'])).get('to')?.value, 'copy');
  });

  it('decides by the present clock after a commit that was too early', async () => {
    const one = bed();
    one.beforeCommit = async () => one.pass(30);
    const decidedAt: number[] = [];
    await one.transact(['a'], (_, now) => {
      decidedAt.push(now - BEGAN);
      return { answer: undefined, changes: { documents: [{ key: 'a', value: 'x' }], notBefore: BEGAN + 50 } };
    });
    assert.deepEqual(decidedAt, [0, 30]);
    assert.deepEqual(one.calls, ['commit early', 'commit done']);
  });

  it('forgets what it deleted', async () => {
    const { transact, append, calls } = bed();
    await append('a', 'x');
    await transact(['a'], () => ({ answer: undefined, changes: { documents: [{ key: 'a', value: null }] } }));
    assert.equal(await append('a', 'y'), 'y');
    assert.deepEqual(calls, ['commit done', 'commit done', 'commit done']);
  });

  it('lets others of its key wait from its second conflict on, and reads anew before it goes on', async () => {
    const one = bed();
    let others = 2;
    let second: Promise<string> | undefined;
    one.beforeCommit = async () => {
      if (others > 0) await one.write('a', `${others}`);
      others -= 1;
      if (one.calls.at(-1)?.startsWith('read')) second ??= one.append('a', 'y');
    };
    assert.equal(await one.append('a', 'x'), '1x');
    assert.deepEqual(one.calls, ['commit conflict', 'commit conflict', 'read a', 'commit done']);
    assert.equal(await second, '1xy');
    assert.deepEqual(one.calls.slice(4), ['commit done']);
  });

  it('gives its turn on when it fails', async () => {
    const one = bed();
    let others = 2;
    one.beforeCommit = async () => {
      if (others > 0) await one.write('a', `${others}`);
      others -= 1;
    };
    const failing = one.transact(['a'], () => {
      if (others <= 0) throw new RangeError('out of bounds');
      return { answer: undefined, changes: { documents: [{ key: 'a', value: 'x' }] } };
    });
    await assert.rejects(failing, RangeError);
    assert.equal(await one.append('a', 'y'), '1y');
  });

  for (const [what, notBefore] of [
    ['that always conflicts', undefined],
    ['that is always too early', Number.MAX_SAFE_INTEGER],
  ] as const)
    it(`ends after a bounded number of decisions: one ${what}`, async () => {
      const one = bed();
      one.beforeCommit = () => one.write('a', 'o');
      let decisions = 0;
      const endless = one.transact(['a'], () => {
        decisions += 1;
        const time = notBefore === undefined ? {} : { notBefore };
        return { answer: undefined, changes: { documents: [{ key: 'a', value: 'x' }], ...time } };
      });
      await assert.rejects(endless, (thrown) => thrown instanceof StoreError && !thrown.mayStand);
      assert.equal(decisions, 64);
    });
});
