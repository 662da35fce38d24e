import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { ParkedClaim } from '../../src/payments/parked-calls.ts';
import type { Store } from '../../src/store/store.ts';
import { SPAN } from './commands.ts';
import { type ThreeServers, threeServers } from './three.ts';

const ROUNDS = 80;
const ENOUGH = 3;

const at = {
  name: fc.constantFrom('a', 'b'),
  forMs: fc.constantFrom(SPAN.none, SPAN.short, SPAN.long, SPAN.long, SPAN.long, SPAN.long),
};
const held = { ...at, claimant: fc.constantFrom('x', 'x', 'y') };
const asked = fc.oneof(
  fc.record({
    kind: fc.constant('park' as const),
    ...at,
    call: fc.string({ unit: 'binary', maxLength: 8 }),
  }),
  fc.record({ kind: fc.constant('claim' as const), ...held }),
  fc.record({ kind: fc.constant('release' as const), ...held }),
);
type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;

/** Every way a command can end. */
const ENDS = [
  ...['park true', 'park false', 'release true', 'release false'],
  ...['claim yours', 'claim yours again', 'claim taken', 'claim none'],
];

let servers: ThreeServers;

before(async () => {
  servers = await threeServers();
});
after(() => servers.stop());

describe('parked calls of a map, of Redis and of SQLite', () => {
  it('are the same after any sequence', async (t) => {
    const told: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 8, maxLength: 24 }), async (sequence) => {
        const stores = await servers.open();
        try {
          for (const one of sequence) {
            const { table, redis, sqlite } = await stores.onAll((store) => answerOf(store, one));
            assert.deepEqual([redis, sqlite], [table, table], JSON.stringify(one));
            const end = `${one.kind} ${typeof table === 'boolean' ? table : endOf(table)}`;
            told[end] = (told[end] ?? 0) + 1;
            await stores.step();
          }
        } finally {
          await stores.close();
        }
      }),
      { numRuns: ROUNDS },
    );
    t.diagnostic(JSON.stringify(told));
    for (const end of ENDS) assert.ok((told[end] ?? 0) >= ENOUGH, `hardly ever: ${end}`);
  });
});

async function answerOf({ parked }: Store, one: Asked): Promise<boolean | ParkedClaim> {
  switch (one.kind) {
    case 'park':
      return parked.park(one.name, one.call, one.forMs);
    case 'claim':
      return parked.claim(one.name, one.claimant, one.forMs);
    case 'release':
      return parked.release(one.name, one.claimant, one.forMs);
  }
}

function endOf(claim: ParkedClaim): string {
  return claim.kind === 'yours' && claim.again ? 'yours again' : claim.kind;
}
