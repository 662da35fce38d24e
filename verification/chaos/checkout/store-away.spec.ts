import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type { Answered } from '../../../spec/e2e/ask.ts';
import { aimed } from '../../../spec/support/acp/checkout-backend.ts';
import { ask, assertKept, insist, send, summaryOf } from './agent.ts';
import { assertDone, comeBack } from './deaths.ts';
import { type Ground, hold, startGround } from './ground.ts';
import { asked, callFor, KEYED_OPERATIONS, type KeyedCall } from './keyed-call.ts';
import { startReplica } from './replica.ts';

const TIMEOUT_MS = 120_000;
const AWAY = '503 service_unavailable';

/**
 * acp 12.9: Redis is paused, dies during a call, and is down. One after the other, with all
 * operations at once.
 */
describe('a checkout whose Redis is away', { timeout: TIMEOUT_MS }, () => {
  let ground: Ground;
  let baseUrl: string;
  before(async () => {
    ground = await startGround();
    baseUrl = (await startReplica(ground)).baseUrl;
  });
  after(() => ground.stop());

  const callsOf = (): Promise<KeyedCall[]> =>
    Promise.all(KEYED_OPERATIONS.map((operation) => callFor(ground, operation)));
  const refuses = async (call: KeyedCall): Promise<void> => {
    const answer = (await send(call, baseUrl)) ?? assert.fail('no answer');
    assert.equal(summaryOf(answer), AWAY);
    assert.ok(Number(answer.headers['retry-after']) >= 1);
    assert.equal(asked(ground, call), 0);
  };

  it('when it is claimed: 503, the backend is not called; afterwards it is called once', async () => {
    const calls = await callsOf();
    const { pid } = ground.redis;
    process.kill(pid, 'SIGSTOP');
    try {
      await Promise.all(calls.map(refuses));
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await Promise.all(calls.map((call) => comeBack(ground, call, { kept: false, asked: 1 }, baseUrl)));
  });

  it('when the backend answers: the answer goes out; while Redis is down: 503; after its restart complete and cancel are read back', async () => {
    const calls = await callsOf();
    const releases = calls.map((call) => hold(ground, call));
    const arrived = Promise.all(calls.map(({ aim }) => ground.backend.arrived(aim)));
    const answering = Promise.all(calls.map((call) => ask(call, baseUrl)));
    await arrived;
    await ground.redis.kill();
    for (const release of releases) release();
    const answers = await answering;
    for (const answer of answers) assert.ok(answer.status < 300, summaryOf(answer));

    await Promise.all((await callsOf()).map(refuses));
    await ground.redis.restart();
    await Promise.all(calls.map((call, index) => endsAfterwards(call, answers[index])));
  });

  it('and comes back empty while the backend works: the answer goes out, and every later call gets it', async () => {
    const calls = await callsOf();
    const releases = calls.map((call) => hold(ground, call));
    const arrived = Promise.all(calls.map(({ aim }) => ground.backend.arrived(aim)));
    const answering = Promise.all(calls.map((call) => ask(call, baseUrl)));
    await arrived;
    const client = new Redis(ground.redis.socketPath);
    await client.flushall();
    await client.quit();
    for (const release of releases) release();
    for (const [index, answer] of (await answering).entries()) {
      const call = calls[index] ?? assert.fail();
      assert.ok(answer.status < 300, summaryOf(answer));
      await assertKept(call, answer, baseUrl);
      assertDone(ground, call, 1);
    }
  });

  async function endsAfterwards(call: KeyedCall, first: Answered | undefined): Promise<void> {
    const { backend } = ground;
    const readsBack = /complete|cancel/.test(call.operation);
    await comeBack(ground, call, { kept: false, asked: readsBack ? 1 : 2 }, baseUrl);
    const { answer } = await insist(call, baseUrl);
    if (call.operation !== 'createCheckoutSession') assert.equal(answer.text, first?.text);
    // A session that the store lost expires: only a backend that reads the key makes no second one.
    const keys = backend.calls
      .filter((received) => aimed(call.aim, received))
      .map(({ headers }) => headers['idempotency-key']);
    assert.equal(new Set(keys).size, 1);
  }
});
