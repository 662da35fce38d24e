import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../spec/support/records.ts';
import { ask, assertKept, insist, send, summaryOf } from './agent.ts';
import { assertDone } from './deaths.ts';
import { type Ground, hold, startGround } from './ground.ts';
import { callFor, KEYED_OPERATIONS } from './keyed-call.ts';
import { startReplica } from './replica.ts';

const AGENTS = 20;
/** No call waits for a lease to end here. */
const PATIENT = { timeoutMs: 20_000 };
const TIMEOUT_MS = 120_000;

/**
 * acp 12.9, where no process dies: calls overlap, their agents leave, their gateway gets SIGTERM.
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
    it(`${operation} ${AGENTS}x at once at two gateways: one is answered, the others get 409, one call of the backend`, async () => {
      const call = await callFor(ground, operation);
      const release = hold(ground, call);
      let refused = 0;
      const answers = await Promise.all(
        Array.from({ length: AGENTS }, async (_, index) => {
          const answer = await ask(call, replicas[index % 2 === 0 ? 0 : 1]);
          if (answer.status === 409) refused += 1;
          if (refused === AGENTS - 1) release();
          return answer;
        }),
      );
      const [accepted, ...others] = answers.toSorted((one, other) => one.status - other.status);
      assert.deepEqual([...new Set(others.map(summaryOf))], ['409 idempotency_in_flight']);
      assert.ok(
        accepted !== undefined && accepted.status < 300 && accepted.headers['idempotent-replayed'] === undefined,
      );
      assertDone(ground, call, 1);
      await assertKept(call, accepted, ...replicas);
      assertDone(ground, call, 1);
    });

    it(`${operation} goes on when its agent leaves: the agent gets the answer of the one call at another gateway`, async () => {
      const call = await callFor(ground, operation);
      const release = hold(ground, call);
      const arrived = ground.backend.arrived(call.aim);
      const leaving = new AbortController();
      const left = send(call, replicas[0], leaving.signal);
      await arrived;
      leaving.abort();
      assert.equal(await left, undefined);
      assert.equal(summaryOf(await ask(call, replicas[1])), '409 idempotency_in_flight');
      release();
      const { answer } = await insist(call, replicas[1]);
      assert.equal(answer.headers['idempotent-replayed'], 'true');
      await assertKept(call, answer, ...replicas);
      assertDone(ground, call, 1);
    });
  }

  it('is completed and answered by a gateway after SIGTERM, which takes no new call', async () => {
    const calls = await Promise.all(KEYED_OPERATIONS.map((operation) => callFor(ground, operation)));
    const gateway = await startReplica(ground, PATIENT);
    const releases = calls.map((call) => hold(ground, call));
    const arrived = Promise.all(calls.map(({ aim }) => ground.backend.arrived(aim)));
    const answers = Promise.all(calls.map((call) => ask(call, gateway.baseUrl)));
    await arrived;
    const ending = gateway.stop();
    await eventually(() => refusal(gateway.baseUrl), 'a refusal of the gateway that stops');
    for (const release of releases) release();
    for (const [index, answer] of (await answers).entries()) {
      const call = calls[index] ?? assert.fail();
      assert.ok(answer.status < 300, summaryOf(answer));
      await assertKept(call, answer, replicas[0]);
      assertDone(ground, call, 1);
    }
    assert.deepEqual(await ending, { code: 0, signal: null });
  });

  /**
   * Undefined while it still takes calls. It refuses them itself, because their session does not
   * exist.
   */
  async function refusal(baseUrl: string): Promise<string | undefined> {
    const call = await callFor(ground, 'completeCheckoutSession', 'cs_unknown');
    const answer = await send(call, baseUrl);
    if (answer === undefined) return 'no answer';
    return answer.status === 503 ? summaryOf(answer) : undefined;
  }
});
