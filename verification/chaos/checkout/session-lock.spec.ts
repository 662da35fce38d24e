import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KeyedOperation } from '../../../src/checkouts/operations.ts';
import { ask, assertKept, insist, insistUntilCut, said } from './agent.ts';
import { type Errand, errandFor } from './errand.ts';
import { type Ground, startGround } from './ground.ts';
import { startReplica } from './replica.ts';

const TIMEOUT_MS = 120_000;

/**
 * A session on which an agent comes with a second key while the complete of the first one dies at
 * the merchant.
 */
interface Scene {
  /** Whether the merchant made the order before the death. */
  readonly acted: boolean;
  readonly second: KeyedOperation;
  /** What the second key comes to. */
  readonly told: string;
}

const SCENES: readonly Scene[] = [
  { acted: true, second: 'completeCheckoutSession', told: '200' },
  { acted: false, second: 'completeCheckoutSession', told: '200' },
  { acted: true, second: 'cancelCheckoutSession', told: '405 checkout_session_not_cancelable' },
];

/**
 * Agents make a new key for every try, so complete and cancel exclude each other on a session, at
 * every gateway (acp 12.7).
 */
describe('a second key on a checkout session', { concurrency: true, timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let replica: string;
  const died = new Map<Scene, { readonly first: Errand; readonly second: Errand; readonly meanwhile: string }>();
  before(async () => {
    ground = await startGround();
    const [doomed, other] = await Promise.all([startReplica(ground), startReplica(ground)]);
    replica = other.baseUrl;
    const { merchant: backend } = ground;
    const cut: Promise<void>[] = [];
    const play = async (scene: Scene): Promise<void> => {
      const first = await errandFor(ground, 'completeCheckoutSession');
      const second = await errandFor(ground, scene.second, first.sessionId);
      backend.misbehave({ kind: 'hang', acts: scene.acted }, first.aim);
      const arrived = backend.arrived(first.aim);
      cut.push(insistUntilCut(first, doomed.baseUrl));
      await arrived;
      died.set(scene, { first, second, meanwhile: said(await ask(second, replica)) });
    };
    await Promise.all(SCENES.map(play));
    await doomed.kill();
    await Promise.all(cut);
  });
  after(() => ground.stop());

  for (const scene of SCENES) {
    const { acted, second: operation, told } = scene;
    it(`${operation} waits while a complete runs; when that died ${acted ? 'after' : 'before'} the order it is told ${told}: one order`, async () => {
      const { first, second, meanwhile } = died.get(scene) ?? assert.fail('nobody died');
      assert.equal(meanwhile, '409 checkout_session_conflict');
      const { answer, before: heard } = await insist(second, replica);
      assert.equal(said(answer), told);
      assert.deepEqual([...new Set(heard)], ['409 checkout_session_conflict']);
      const own = await insist(first, replica);
      assert.equal(own.answer.status, 200, own.answer.text);
      await assertKept(second, answer, replica);
      await assertKept(first, own.answer, replica);
      assert.equal(ground.merchant.orders(first.sessionId ?? ''), 1);
    });
  }
});
