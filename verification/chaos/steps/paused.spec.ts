import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import type { PaymentStep } from '../../../src/payments/steps.ts';
import { rowsOf } from '../every.ts';
import { checkBooks } from './books.ts';
import { type Answer, ask, insist, type PaidCall, signedCall } from './buyer.ts';
import { type Ground, startGround } from './ground.ts';
import { type Fate, type Kind, type Purchase, purchaseOf } from './purchases.ts';
import { openSite, type Site } from './site.ts';

/** Both processes run at once for every pause. */
const AT_ONCE = 4;

/** What is known when the replica has answered and the frozen gateway has been woken up. */
interface Scene {
  readonly frozen: Site;
  readonly other: Site;
  readonly call: PaidCall;
  readonly purchase: Purchase;
  /** What its own buyer was answered. */
  readonly late: Answer;
  /** The record before it woke up. */
  readonly before: PaymentRecord | undefined;
  /** Lets it end in order, with everything that it still wants to write. */
  end(): Promise<unknown>;
  record(): Promise<PaymentRecord | undefined>;
}

const PAUSES = rowsOf<{ readonly step: PaymentStep; readonly rare?: true }>([
  { step: 'settling' },
  { step: 'sending', rare: true },
  { step: 'signed', rare: true },
  { step: 'answered' },
]);

describe('a gateway that stands still for longer than its lease', { concurrency: AT_ONCE }, () => {
  let ground: Ground;
  before(async () => {
    ground = await startGround();
  });
  after(() => ground.stop());

  for (const { step } of PAUSES)
    it(`at "${step}" has lost the payment to its replica: one settlement, one answer`, async () => {
      const fate = { told: 'answer', asked: 1 } as const;
      const scene = await pause(step, 'GET', 'key-of-the-buyer', fate);
      // Its own buyer is not left alone: he is told to come again, and then has the same answer.
      assert.equal(scene.late.error?.details?.state, 'in_flight', scene.late.text);
      const told = await insist(scene.call, scene.frozen.baseUrl);
      await nothingChanged(scene);
      await checkBooks(ground, scene.other, { ...scene, told, fate });
    });

  it('at "forwarding" sends the merchant the same key again, and changes nothing', async () => {
    const scene = await pause('forwarding', 'GET', undefined, { told: 'answer', asked: 1 });
    await nothingChanged(scene);
    await checkBooks(ground, scene.other, { ...scene, told: scene.late, fate: { told: 'answer', asked: 2 } });
  });

  it('at "forwarding" of a call that must not be repeated is the only one that sends it, and says so', async () => {
    const scene = await pause('forwarding', 'plain POST', undefined, { told: 'undelivered', asked: 0 });
    assert.ok(scene.purchase.answers(scene.late.text), scene.late.text);
    await scene.end();
    const told = await ask(scene.call, scene.other.baseUrl);
    await checkBooks(ground, scene.other, { ...scene, told, fate: { told: 'answer', asked: 1 } });
  });

  async function nothingChanged({ before, end, record }: Scene): Promise<void> {
    await end();
    assert.deepEqual(await record(), before, 'what it wrote after its sleep changed nothing');
  }

  /**
   * Freezes a gateway at a step, has its replica answer the buyer, and wakes it up. `fate`: as the
   * replica has it.
   */
  async function pause(at: PaymentStep, kind: Kind, key: string | undefined, fate: Fate): Promise<Scene> {
    const purchase = purchaseOf(kind);
    const frozen = await openSite(ground, { store: 'redis', rail: 'local' });
    const other = await openSite(ground, { store: 'redis', rail: 'local', beside: frozen });
    const [sleeper] = await Promise.all([frozen.start({ halt: { at, signal: 'SIGSTOP' } }), other.start()]);
    const call = await signedCall(ground, frozen, purchase.resourceId, purchase.input, key);
    const waiting = ask(call, frozen.baseUrl);
    await sleeper.logged((line) => line['halt'] === at);

    const told = await insist(call, other.baseUrl);
    await checkBooks(ground, other, { call, purchase, told, fate });
    const store = await other.openStore();
    ground.keep(() => store.close());
    const record = () => store.ledger.read(call.payId);
    const before = await record();

    process.kill(sleeper.pid, 'SIGCONT');
    const late = await waiting;
    return { frozen, other, call, purchase, late, before, record, end: sleeper.stop };
  }
});
