import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../spec/support/records.ts';
import { ask, assertKept, insist, said, send } from './agent.ts';
import { assertDone } from './deaths.ts';
import { errandFor, KEYED_OPERATIONS } from './errand.ts';
import { type Ground, hold, startGround } from './ground.ts';
import { startReplica } from './replica.ts';

const AGENTS = 20;
/** Nobody waits for a lease to end here. */
const PATIENT = { timeoutMs: 20_000 };
const TIMEOUT_MS = 120_000;

/**
 * acp 12.9, where no process dies: calls meet each other, their agents leave, their gateway is told
 * to stop.
 */
describe('a checkout call that runs', { timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let replicas: readonly [string, string];
  before(async () => {
    ground = await startGround();
    const [one, other] = await Promise.all([startReplica(ground, PATIENT), startReplica(ground, PATIENT)]);
    replicas = [one.baseUrl, other.baseUrl];
  });
  after(() => ground.stop());

  for (const operation of KEYED_OPERATIONS) {
    it(`${operation} ${AGENTS}x at once at two gateways: one is answered, the others are told to wait, one call`, async () => {
      const errand = await errandFor(ground, operation);
      const release = hold(ground, errand);
      let refused = 0;
      const answers = await Promise.all(
        Array.from({ length: AGENTS }, async (_, index) => {
          const answer = await ask(errand, replicas[index % 2 === 0 ? 0 : 1]);
          if (answer.status === 409) refused += 1;
          if (refused === AGENTS - 1) release();
          return answer;
        }),
      );
      const [told, ...others] = answers.toSorted((one, other) => one.status - other.status);
      assert.deepEqual([...new Set(others.map(said))], ['409 idempotency_in_flight']);
      assert.ok(told !== undefined && told.status < 300 && told.headers['idempotent-replayed'] === undefined);
      assertDone(ground, errand, 1);
      await assertKept(errand, told, ...replicas);
      assertDone(ground, errand, 1);
    });

    it(`${operation} goes on when its agent leaves: he comes back elsewhere and has the answer of the one call`, async () => {
      const errand = await errandFor(ground, operation);
      const release = hold(ground, errand);
      const arrived = ground.merchant.arrived(errand.aim);
      const leaving = new AbortController();
      const left = send(errand, replicas[0], leaving.signal);
      await arrived;
      leaving.abort();
      assert.equal(await left, undefined);
      assert.equal(said(await ask(errand, replicas[1])), '409 idempotency_in_flight');
      release();
      const { answer } = await insist(errand, replicas[1]);
      assert.equal(answer.headers['idempotent-replayed'], 'true');
      await assertKept(errand, answer, ...replicas);
      assertDone(ground, errand, 1);
    });
  }

  it('is ended and answered by a gateway that got SIGTERM, which takes no other', async () => {
    const errands = await Promise.all(KEYED_OPERATIONS.map((operation) => errandFor(ground, operation)));
    const gateway = await startReplica(ground, PATIENT);
    const releases = errands.map((errand) => hold(ground, errand));
    const arrived = Promise.all(errands.map(({ aim }) => ground.merchant.arrived(aim)));
    const answers = Promise.all(errands.map((errand) => ask(errand, gateway.baseUrl)));
    await arrived;
    const ending = gateway.stop();
    await eventually(() => refusal(gateway.baseUrl), 'a refusal of the gateway that goes');
    for (const release of releases) release();
    for (const [index, answer] of (await answers).entries()) {
      const errand = errands[index] ?? assert.fail();
      assert.ok(answer.status < 300, said(answer));
      await assertKept(errand, answer, replicas[0]);
      assertDone(ground, errand, 1);
    }
    assert.deepEqual(await ending, { code: 0, signal: null });
  });

  /**
   * Undefined while it still takes errands, which go no further than to its own refusal of a
   * session that does not exist.
   */
  async function refusal(baseUrl: string): Promise<string | undefined> {
    const errand = await errandFor(ground, 'completeCheckoutSession', 'cs_of_nobody');
    const answer = await send(errand, baseUrl);
    if (answer === undefined) return 'nobody listens';
    return answer.status === 503 ? said(answer) : undefined;
  }
});
