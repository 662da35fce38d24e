import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import type { PaymentStep } from '../../../src/payments/steps.ts';
import { rowsOf } from '../plan.ts';
import { type Answer, ask, insist, type PaidCall, signedCall } from './buyer.ts';
import { checkLedgers } from './deaths.ts';
import { type Fate, type Kind, type Purchase, purchaseOf } from './purchases.ts';
import { type Ground, openSite, type Site, startGround } from './site.ts';

/** Both processes run at once for every pause. */
const AT_ONCE = 4;

/** The state after the replica has answered and the paused gateway was resumed. */
interface Scene {
  readonly frozen: Site;
  readonly other: Site;
  readonly call: PaidCall;
  readonly purchase: Purchase;
  /** The answer of its own buyer. */
  readonly late: Answer;
  /** The record before it was resumed. */
  readonly before: PaymentRecord | undefined;
  /** Ends it in order, after all its writes. */
  end(): Promise<unknown>;
  record(): Promise<PaymentRecord | undefined>;
}

const PAUSES = rowsOf<{ readonly step: PaymentStep; readonly rare?: true }>([
  { step: 'settling' },
  { step: 'sending', rare: true },
  { step: 'signed', rare: true },
  { step: 'answered' },
]);

describe('a gateway that is paused for longer than its lease', { concurrency: AT_ONCE }, () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const { step } of PAUSES)
    it(`at "${step}" loses the payment to its replica: one settlement, one answer`, async () => {
      const fate = { outcome: 'answer', asked: 1 } as const;
      const scene = await pause(step, 'GET', 'key-of-the-buyer', fate);
      // Its own buyer is asked to retry, and then has the same answer.
      assert.equal(scene.late.error?.details?.state, 'in_flight', scene.late.text);
      const response = await insist(scene.call, scene.frozen.baseUrl);
      await nothingChanged(scene);
      await checkLedgers(ground, scene.other, { ...scene, response, fate });
    });

  it('at "forwarding" sends the backend the same key again, and changes nothing', async () => {
    const scene = await pause('forwarding', 'GET', undefined, { outcome: 'answer', asked: 1 });
    await nothingChanged(scene);
    await checkLedgers(ground, scene.other, { ...scene, response: scene.late, fate: { outcome: 'answer', asked: 2 } });
  });

  it('at "forwarding" of a call that must not be repeated is the only one that sends it, and delivers it', async () => {
    const scene = await pause('forwarding', 'plain POST', undefined, { outcome: 'undelivered', asked: 0 });
    assert.ok(scene.purchase.answers(scene.late.text), scene.late.text);
    await scene.end();
    const response = await ask(scene.call, scene.other.baseUrl);
    await checkLedgers(ground, scene.other, { ...scene, response, fate: { outcome: 'answer', asked: 1 } });
  });

  async function nothingChanged({ before, end, record }: Scene): Promise<void> {
    await end();
    assert.deepEqual(await record(), before, 'its writes after the pause change nothing');
  }

  /**
   * Pauses a gateway at a step, lets its replica answer the buyer, and resumes it. `fate`: that of
   * the call at the replica.
   */
  async function pause(at: PaymentStep, kind: Kind, key: string | undefined, fate: Fate): Promise<Scene> {
    const purchase = purchaseOf(kind);
    const frozen = await openSite(ground, { store: 'redis', rail: 'local' });
    const other = await openSite(ground, { store: 'redis', rail: 'local', beside: frozen });
    const [sleeper] = await Promise.all([frozen.start({ halt: { at, signal: 'SIGSTOP' } }), other.start()]);
    const call = await signedCall(ground, frozen, purchase.resourceId, purchase.input, key);
    const waiting = ask(call, frozen.baseUrl);
    await sleeper.logged((line) => line['halt'] === at);

    const response = await insist(call, other.baseUrl);
    await checkLedgers(ground, other, { call, purchase, response, fate });
    const store = await other.openStore();
    ground.keep(() => store.close());
    const record = () => store.ledger.read(call.payId);
    const before = await record();

    process.kill(sleeper.pid, 'SIGCONT');
    const late = await waiting;
    return { frozen, other, call, purchase, late, before, record, end: sleeper.stop };
  }
});
