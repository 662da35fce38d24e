/** A purchase under a mandate during which the gateway dies. */

import assert from 'node:assert/strict';
import { eventually } from '../../../spec/support/records.ts';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { untilAtRest } from './absences.ts';
import { ask, insist, sendUntilCut, signedCall, takeBack } from './buyer.ts';
import type { Death } from './deaths.ts';
import type { Ground } from './ground.ts';
import { checkLedgers } from './ledgers.ts';
import { readUses, usesOf } from './mandate-uses.ts';
import { type Mandated, type MandatedSite, openMandatedSite } from './mandated.ts';
import { type Fate, fateOf, purchaseOf } from './purchases.ts';

/** A purchase under a mandate during which the gateway dies. */
export interface MandateDeath extends Pick<Death, 'where' | 'step' | 'key'> {
  /** The state of the mandate in the register while the gateway is dead. */
  readonly left: Exclude<Left, 'free'>;
  /**
   * What the buyer does after the death: it retries, waits until no process works on the payment,
   * or cancels it.
   */
  readonly buyer?: 'away' | 'cancels';
}

/** `free`: unused. */
type Left = 'held' | 'spent' | 'free';

/** A state in which the record and the register can be read together. */
interface Scene {
  readonly ground: Ground;
  readonly site: MandatedSite;
  readonly ledger: Pick<PaymentLedger, 'read'>;
  readonly where: Death['where'];
}

/**
 * A gateway dies at the step of a purchase under a mandate and starts again. The record and the
 * register must agree before and after, the mandate must have bought exactly once, and must buy
 * nothing with another payment.
 */
export async function dieUnderMandate(ground: Ground, death: MandateDeath): Promise<void> {
  const { where, step, key, left, buyer } = death;
  const purchase = purchaseOf('GET');
  const site = await openMandatedSite(ground, where);
  const doomed = await site.start({ halt: { at: step, signal: 'SIGKILL' } });
  const call = await site.mandatedCall(purchase, key);
  const [, end] = await Promise.all([sendUntilCut(call, site.baseUrl), doomed.ended]);
  assert.deepEqual(end, { code: null, signal: 'SIGKILL' });

  const store = await site.openStore();
  ground.keep(() => store.close());
  const scene = { ground, site, ledger: store.ledger, where };
  assert.equal(await agreed(scene, call), left);

  if (buyer === 'cancels') await takeBack(ground, call);
  const gateway = await site.start();
  const bought = buyer === undefined ? call : await comeBackLate(scene, call, buyer);
  const response = await insist(bought, site.baseUrl);
  assert.equal(await agreed(scene, bought), 'spent');
  await buyAgain(scene, bought);
  assert.equal(await agreed(scene, bought), 'spent');
  if (buyer === 'cancels') {
    assert.deepEqual([response.status, await site.income()], [200, bought.units], response.text);
  } else {
    const fate: Fate = buyer === undefined ? fateOf('GET', step) : { outcome: 'answer', asked: 1 };
    await checkLedgers(ground, site, { call: bought, purchase, response, fate });
  }
  const receipt = await eventually(async () => (await site.receipts())[0], 'a receipt');
  assert.equal(receipt.authorization?.reference, call.reference, 'the receipt names the mandate');
  await gateway.kill();
}

/** The state of the mandate, as the register has it and the state of the payment requires. */
async function agreed({ ground, site, ledger, where }: Scene, { payId, units }: Mandated): Promise<Left> {
  const state = (await ledger.read(payId))?.state;
  assert.deepEqual(await readUses(ground, site, where.store), usesOf(state, units), `the payment is ${state}`);
  if (state === undefined || state === 'refused') return 'free';
  return state === 'reserved' || state === 'settling' ? 'held' : 'spent';
}

/**
 * Waits until no process works on the first payment, which must have released its mandate. @returns
 * the buyer's next call
 */
async function comeBackLate(scene: Scene, call: Mandated, buyer: 'away' | 'cancels'): Promise<Mandated> {
  const { ground, site, ledger } = scene;
  await untilAtRest(ledger, call.payId);
  assert.equal(await agreed(scene, call), 'free');
  return buyer === 'away' ? call : withAnotherPayment(ground, site, call);
}

/** The mandate with a second payment: nothing is reserved or paid. */
async function buyAgain({ ground, site, ledger }: Scene, call: Mandated): Promise<void> {
  const other = await withAnotherPayment(ground, site, call);
  const { status, error, text } = await ask(other, site.baseUrl);
  assert.deepEqual([status, error?.code, error?.details?.reason], [409, 'AUTHORIZATION_REPLAYED', 'replayed'], text);
  assert.equal(await ledger.read(other.payId), undefined);
}

async function withAnotherPayment(
  ground: Ground,
  site: MandatedSite,
  { mandate, reference, resourceId, input, key }: Mandated,
): Promise<Mandated> {
  return { ...(await signedCall(ground, site, resourceId, JSON.parse(input), key)), mandate, reference };
}
