import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { Store } from '../../src/store/store.ts';
import { SPAN } from './commands.ts';
import { type ThreeServers, threeServers } from './three.ts';

const ROUNDS = 60;
const NAMES = ['a', 'b', 'c'];

const asked = fc.oneof(
  fc.record({
    kind: fc.constant('park' as const),
    name: fc.constantFrom(...NAMES),
    call: fc.string({ unit: 'binary', maxLength: 8 }),
    forMs: fc.constantFrom(SPAN.none, SPAN.short, SPAN.long, SPAN.long),
  }),
  fc.record({ kind: fc.constant('take' as const), name: fc.constantFrom(...NAMES) }),
);
type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;

let servers: ThreeServers;

before(async () => {
  servers = await threeServers();
});
after(() => servers.stop());

describe('parked calls of a map, of Redis and of SQLite', () => {
  it('are the same after any sequence', async (t) => {
    const told: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 5, maxLength: 20 }), async (sequence) => {
        const stores = await servers.open();
        try {
          for (const one of sequence) {
            const { table, redis, sqlite } = await stores.onAll((store) => answerOf(store, one));
            assert.deepEqual([redis, sqlite], [table, table], JSON.stringify(one));
            await stores.step();
            const what = one.kind === 'park' ? 'parked' : table === undefined ? 'nothing there' : 'taken';
            told[what] = (told[what] ?? 0) + 1;
          }
        } finally {
          await stores.close();
        }
      }),
      { numRuns: ROUNDS },
    );
    t.diagnostic(JSON.stringify(told));
    for (const what of ['parked', 'taken', 'nothing there']) assert.ok((told[what] ?? 0) > 0, `never: ${what}`);
  });
});

async function answerOf({ parked }: Store, one: Asked): Promise<string | undefined> {
  if (one.kind === 'take') return parked.take(one.name);
  await parked.park(one.name, one.call, one.forMs);
  return undefined;
}
