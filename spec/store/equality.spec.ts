import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { PaymentState } from '../../src/payments/ledger/ledger.ts';
import { commands } from './commands.ts';
import { compare } from './compare.ts';
import { type ThreeServers, threeServers } from './three.ts';

/**
 * Sequences that run side by side, one command of each in a step: SQLite commits them together,
 * Redis gets them in one pipeline.
 */
const SIDE_BY_SIDE = 200;
const ROUNDS = 14;
/** How long a failure is made smaller, milliseconds. */
const LONGEST_MS = 90_000;
/** Also on a machine that is too busy for all rounds in that time. */
const LEAST_SEQUENCES = 500;
/** A failure names a seed and a path: given here, it runs again. */
const { ACG_SEED, ACG_PATH } = process.env;
const REPLAY = {
  ...(ACG_SEED === undefined ? {} : { seed: Number(ACG_SEED) }),
  ...(ACG_PATH === undefined ? {} : { path: ACG_PATH }),
};

let servers: ThreeServers;

before(async () => {
  servers = await threeServers();
});
after(() => servers.stop());

describe('the table, the Lua scripts and SQLite', () => {
  it('answer the same to thousands of sequences of commands, each sent once or twice', async (t) => {
    const reached = new Set<string>();
    let sequences = 0;
    let calls = 0;
    const rounds = fc.noBias(fc.array(commands, { minLength: 1, maxLength: SIDE_BY_SIDE, size: 'max' }));
    await fc.assert(
      fc.asyncProperty(rounds, async (drawn) => {
        const stores = await servers.open();
        try {
          calls += await compare(stores, drawn, reached);
          sequences += drawn.length;
        } finally {
          await stores.close();
        }
      }),
      { numRuns: ROUNDS, interruptAfterTimeLimit: LONGEST_MS, ...REPLAY },
    );
    t.diagnostic(`${sequences} sequences, ${calls} calls`);
    if (ACG_PATH !== undefined) return;
    assert.ok(sequences >= LEAST_SEQUENCES);
    // A comparison of commands that are all refused would prove nothing.
    for (const wanted of EXPECTED) assert.ok(reached.has(wanted), `never reached: ${wanted}`);
  });
});

/** What must have been seen, in the words of compare.ts. */
const EXPECTED = [
  ...[
    'granted',
    'granted again',
    'granted after take-over',
    'in_flight',
    'conflict',
    'refused',
    'guarded',
    'completed',
    'replayed',
    'open_mandate_spent',
    'budget_exceeded',
    'recurrence_exceeded',
    'LedgerCorruption',
    'RangeError',
  ].map((kind) => `reserve: ${kind}`),
  ...['done', 'done before', 'fenced', 'illegal', 'lost', 'LedgerCorruption', 'RangeError'].flatMap((kind) => [
    `advance: ${kind}`,
    `note: ${kind}`,
  ]),
  ...['true', 'false', 'RangeError'].map((kind) => `renew: ${kind}`),
  ...['gone', 'fenced', 'illegal'].map((kind) => `discard: ${kind}`),
  ...([
    'reserved',
    'worked',
    'settling',
    'withdrawn',
    'settled',
    'delivered',
    'undelivered',
    'refused',
    'refundDue',
    'refunding',
    'refunded',
    'unresolved',
  ] satisfies PaymentState[]),
  ...['operator', 'logs', 'claim', 'expired', 'elsewhere', 'unsent', 'unclaimed'],
  ...[
    'a mandate, reserved',
    'a mandate, withdrawn',
    'a mandate, settled',
    'a mandate, delivered',
    'a mandate, refused',
  ],
  ...['sending begun', 'sending ended'],
  ...[
    'unpaid work',
    'a kept answer for longer',
    'recovered',
    'a kept answer',
    'a key that was noted',
    'a token',
    'a token of another payment',
    'something due',
  ],
];
