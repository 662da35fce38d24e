import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { Store } from '../../src/store/port/store.ts';
import { SPAN } from './commands.ts';
import { type ThreeServers, threeServers } from './three.ts';

const ROUNDS = 25;
const ENOUGH = 3;

const task = fc.constantFrom('a', 'b');
const forMs = fc.constantFrom(SPAN.none, SPAN.short, SPAN.long, SPAN.long, SPAN.long, SPAN.long);
const held = { task, claimant: fc.constantFrom('x', 'x', 'x', 'y'), attempt: fc.constantFrom('1', '2') };
const asked = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('holder' as const), task }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), ...held, forMs }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      ...held,
      how: fc.constantFrom('nothing', 'nothing', 'kept', 'worthless'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('decline' as const), task, forMs }) },
);
type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;

/** Every way a command can end. */
const ENDS = [
  ...['holder undefined', 'holder x', 'holder y', 'holder declined'],
  ...['claim true', 'claim false', 'decline true', 'decline false'],
];

let servers: ThreeServers;

before(async () => {
  servers = await threeServers();
});
after(() => servers.stop());

describe('claims of tasks of a map, of Redis and of SQLite', () => {
  it('are the same after any sequence', async (t) => {
    const ends: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 8, maxLength: 24 }), async (sequence) => {
        const stores = await servers.open();
        try {
          for (const one of sequence) {
            const { table, redis, sqlite } = await stores.onAll((store) => answerOf(store, one));
            assert.deepEqual([redis, sqlite], [table, table], JSON.stringify(one));
            const end = `${one.kind} ${table}`;
            ends[end] = (ends[end] ?? 0) + 1;
            await stores.step();
          }
        } finally {
          await stores.close();
        }
      }),
      { numRuns: ROUNDS },
    );
    t.diagnostic(JSON.stringify(ends));
    for (const end of ENDS) assert.ok((ends[end] ?? 0) >= ENOUGH, `hardly ever: ${end}`);
  });
});

async function answerOf({ tasks }: Store, one: Asked): Promise<unknown> {
  switch (one.kind) {
    case 'holder':
      return tasks.holder(one.task);
    case 'claim':
      return tasks.claim(one.task, one.claimant, one.attempt, one.forMs);
    case 'end':
      return tasks.end(one.task, one.claimant, one.attempt, one.how);
    case 'decline':
      return tasks.decline(one.task, one.forMs);
  }
}
