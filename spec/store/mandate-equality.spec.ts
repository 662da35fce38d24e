import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { MandateRegister, RegisterEpoch } from '../../src/mandates/register/register.ts';
import { BORN_AGO_S, type DrawnClaim, drawnClaim, drawnClaims } from './claims.ts';
import { type ThreeServers, threeServers } from './three.ts';

const ROUNDS = 25;
/**
 * Families of ids that are asked for side by side, so that many sequences fit into one wait for the
 * clock.
 */
const SIDE_BY_SIDE = 20;
/** A comparison of claims that are all refused, or never, would prove nothing. */
const ENOUGH = 20;
const ENDS = [
  ...['reserved', 'replayed', 'open_mandate_spent', 'budget_exceeded', 'recurrence_exceeded', 'recurrence_too_soon'],
  ...['commit', 'release'],
];

/** `call` is one of few names, so that some are repeated. */
interface Asked {
  readonly kind: 'reserve' | 'commit' | 'release';
  readonly call: number;
  readonly claim: DrawnClaim;
}
const asked: fc.Arbitrary<Asked> = fc.record({
  kind: fc.constantFrom('reserve', 'reserve', 'reserve', 'commit', 'release'),
  call: fc.nat(7),
  claim: drawnClaims,
});

/**
 * Registers that always were, that began after some of the claims were made, and that were lost
 * then.
 */
const EPOCHS = {
  always: () => ({ born: 0, openFrom: 0 }),
  first: (began) => ({ born: began - BORN_AGO_S * 1_000, openFrom: 0 }),
  lost: (began) => ({ born: began - BORN_AGO_S * 1_000, openFrom: began - BORN_AGO_S * 1_000 }),
} satisfies Record<string, (began: number) => RegisterEpoch>;
const epochs = fc.constantFrom(...(Object.keys(EPOCHS) as (keyof typeof EPOCHS)[]));

let servers: ThreeServers;
before(async () => {
  servers = await threeServers();
});
after(() => servers.stop());

describe('the register of uses in the table, in the Lua scripts and in SQLite', () => {
  it('answers the same to thousands of claims, commits and releases, each of which may come twice', async (t) => {
    const ends: Record<string, number> = {};
    const sequence = fc.array(asked, { minLength: 8, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(sequence, { minLength: 1, maxLength: SIDE_BY_SIDE, size: 'max' }),
        epochs,
        async (families, epoch) => {
          const stores = await servers.open(EPOCHS[epoch]);
          try {
            for (let step = 0; families.some((one) => one.length > step); step += 1) {
              const sent = families.flatMap((one, family) => {
                const drawn = one[step];
                return drawn === undefined ? [] : [{ family: `f${family}`, drawn }];
              });
              const { table, redis, sqlite } = await stores.onAll(({ mandates }) =>
                Promise.all(sent.map(({ family, drawn }) => answerOf(mandates, family, drawn))),
              );
              const what = `${epoch}: ${JSON.stringify(sent)}`;
              assert.deepEqual(sqlite, table, what);
              assert.deepEqual(redis, table, what);
              for (const end of table) ends[end] = (ends[end] ?? 0) + 1;
              await stores.step();
            }
          } finally {
            await stores.close();
          }
        },
      ),
      { numRuns: ROUNDS },
    );
    t.diagnostic(JSON.stringify(ends));
    for (const end of ENDS) assert.ok((ends[end] ?? 0) >= ENOUGH, `hardly ever: ${end}`);
  });
});

async function answerOf(mandates: MandateRegister, family: string, { kind, call, claim }: Asked): Promise<string> {
  const name = `${family}-${call}`;
  if (kind === 'reserve') {
    const used = await mandates.reserve(name, drawnClaim(family, claim));
    return used.kind === 'reserved' ? used.kind : used.reason;
  }
  await mandates.finish(name, kind);
  return kind;
}
