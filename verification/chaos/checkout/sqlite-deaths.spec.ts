import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { CheckoutStep } from '../../../src/checkouts/attempts.ts';
import { AT_BACKEND, comeBack, type Death, dieAt, dieAtBackend, fateOf } from './deaths.ts';
import { type Ground, startGround } from './ground.ts';
import { callFor, type KeyedCall } from './keyed-call.ts';

/** Fails a test whose gateway does not die, milliseconds. */
const TIMEOUT_MS = 120_000;

const DEATHS: readonly Death<Exclude<CheckoutStep, 'after_read'>>[] = [
  { operation: 'completeCheckoutSession', at: 'after_claim' },
  { operation: 'completeCheckoutSession', at: 'after_merchant' },
  { operation: 'completeCheckoutSession', at: 'after_finish' },
  { operation: 'createCheckoutSession', at: 'after_merchant' },
  { operation: 'cancelCheckoutSession', at: 'after_finish' },
];

/**
 * acp 12.9 without Redis: the one gateway dies repeatedly over the same file, then every call is
 * sent again.
 */
describe('checkouts whose gateway on SQLite died', { concurrency: true, timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let baseUrl: string;
  const left = new Map<Death, KeyedCall>();
  before(async () => {
    ground = await startGround();
    const site = await ground.site({ store: 'sqlite' });
    ({ baseUrl } = site);
    for (const death of DEATHS) {
      const call = await callFor(ground, death.operation);
      left.set(death, call);
      await dieAt(call, site, death.at);
    }
    for (const [death, call] of await dieAtBackend(ground, site)) left.set(death, call);
    await site.start();
  });
  after(() => ground.stop());

  for (const death of [...DEATHS, ...AT_BACKEND]) {
    const { operation, at } = death;
    const fate = fateOf(death);
    it(`${operation} at "${at}": ${fate.kept ? 'replayed' : 'ended'} after the restart, one answer, the backend called ${fate.asked}x`, async () => {
      await comeBack(ground, left.get(death) ?? assert.fail('no gateway died'), fate, baseUrl);
    });
  }
});
