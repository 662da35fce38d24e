import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KeyedOperation } from '../../../src/checkouts/operations.ts';
import { ask, assertKept, insist, insistUntilCut, summaryOf } from './agent.ts';
import { type Ground, startGround } from './ground.ts';
import { callFor, type KeyedCall } from './keyed-call.ts';
import { startReplica } from './replica.ts';

const TIMEOUT_MS = 120_000;

/**
 * A session with a call under a second key, while the gateway dies during the complete of the
 * first.
 */
interface Scene {
  /** Whether the backend made the order before the death. */
  readonly acted: boolean;
  readonly second: KeyedOperation;
  /** The last answer for the second key. */
  readonly outcome: string;
}

const SCENES: readonly Scene[] = [
  { acted: true, second: 'completeCheckoutSession', outcome: '200' },
  { acted: false, second: 'completeCheckoutSession', outcome: '200' },
  { acted: true, second: 'cancelCheckoutSession', outcome: '405 checkout_session_not_cancelable' },
];

/**
 * Agents make a new key for every attempt, so complete and cancel exclude each other on a session,
 * at every gateway (acp 12.7).
 */
describe('a second key on a checkout session', { concurrency: true, timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let replica: string;
  const died = new Map<Scene, { readonly first: KeyedCall; readonly second: KeyedCall; readonly meanwhile: string }>();
  before(async () => {
    ground = await startGround();
    const [doomed, other] = await Promise.all([startReplica(ground), startReplica(ground)]);
    replica = other.baseUrl;
    const { backend } = ground;
    const cut: Promise<void>[] = [];
    const play = async (scene: Scene): Promise<void> => {
      const first = await callFor(ground, 'completeCheckoutSession');
      const second = await callFor(ground, scene.second, first.sessionId);
      backend.misbehave({ kind: 'hang', acts: scene.acted }, first.aim);
      const arrived = backend.arrived(first.aim);
      cut.push(insistUntilCut(first, doomed.baseUrl));
      await arrived;
      died.set(scene, { first, second, meanwhile: summaryOf(await ask(second, replica)) });
    };
    await Promise.all(SCENES.map(play));
    await doomed.kill();
    await Promise.all(cut);
  });
  after(() => ground.stop());

  for (const scene of SCENES) {
    const { acted, second: operation, outcome } = scene;
    it(`${operation} waits while a complete runs; when that died ${acted ? 'after' : 'before'} the order it gets ${outcome}: one order`, async () => {
      const { first, second, meanwhile } = died.get(scene) ?? assert.fail('no gateway died');
      assert.equal(meanwhile, '409 checkout_session_conflict');
      const { answer, before: earlier } = await insist(second, replica);
      assert.equal(summaryOf(answer), outcome);
      assert.deepEqual([...new Set(earlier)], ['409 checkout_session_conflict']);
      const own = await insist(first, replica);
      assert.equal(own.answer.status, 200, own.answer.text);
      await assertKept(second, answer, replica);
      await assertKept(first, own.answer, replica);
      assert.equal(ground.backend.orders(first.sessionId ?? ''), 1);
    });
  }
});
