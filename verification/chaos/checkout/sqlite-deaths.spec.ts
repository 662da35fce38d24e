import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { CheckoutStep } from '../../../src/checkouts/steps.ts';
import { AT_MERCHANT, comeBack, type Death, dieAt, dieAtMerchant, fateOf } from './deaths.ts';
import { type Errand, errandFor } from './errand.ts';
import { type Ground, startGround } from './ground.ts';

/** A death that does not come, milliseconds. */
const TIMEOUT_MS = 120_000;

const DEATHS: readonly Death<Exclude<CheckoutStep, 'after_read'>>[] = [
  { operation: 'completeCheckoutSession', at: 'after_claim' },
  { operation: 'completeCheckoutSession', at: 'after_merchant' },
  { operation: 'completeCheckoutSession', at: 'after_finish' },
  { operation: 'createCheckoutSession', at: 'after_merchant' },
  { operation: 'cancelCheckoutSession', at: 'after_finish' },
];

/**
 * acp 12.9 without Redis: the one gateway dies again and again over the same file, and what is left
 * comes back.
 */
describe('checkouts whose gateway on SQLite died', { concurrency: true, timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let baseUrl: string;
  const left = new Map<Death, Errand>();
  before(async () => {
    ground = await startGround();
    const site = await ground.site({ store: 'sqlite' });
    ({ baseUrl } = site);
    for (const death of DEATHS) {
      const errand = await errandFor(ground, death.operation);
      left.set(death, errand);
      await dieAt(errand, site, death.at);
    }
    for (const [death, errand] of await dieAtMerchant(ground, site)) left.set(death, errand);
    await site.start();
  });
  after(() => ground.stop());

  for (const death of [...DEATHS, ...AT_MERCHANT]) {
    const { operation, at } = death;
    const fate = fateOf(death);
    it(`${operation} at "${at}": ${fate.kept ? 'replayed' : 'ended'} after the restart, one answer, the merchant asked ${fate.asked}x`, async () => {
      await comeBack(ground, left.get(death) ?? assert.fail('it never died'), fate, baseUrl);
    });
  }
});
