import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type { Answered } from '../../../spec/e2e/ask.ts';
import { aimed } from '../../../spec/support/acp/checkout-backend.ts';
import { ask, assertKept, insist, said, send } from './agent.ts';
import { assertDone, comeBack } from './deaths.ts';
import { asked, type Errand, errandFor, KEYED_OPERATIONS } from './errand.ts';
import { type Ground, hold, startGround } from './ground.ts';
import { startReplica } from './replica.ts';

const TIMEOUT_MS = 120_000;
const AWAY = '503 service_unavailable';

/**
 * acp 12.9: Redis stands still, dies during a call, and is down. One after the other, with all
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

  const errandsOf = (): Promise<Errand[]> =>
    Promise.all(KEYED_OPERATIONS.map((operation) => errandFor(ground, operation)));
  const refuses = async (errand: Errand): Promise<void> => {
    const answer = (await send(errand, baseUrl)) ?? assert.fail('no answer');
    assert.equal(said(answer), AWAY);
    assert.ok(Number(answer.headers['retry-after']) >= 1);
    assert.equal(asked(ground, errand), 0);
  };

  it('when it is claimed: 503, the merchant is not asked; afterwards it is asked once', async () => {
    const errands = await errandsOf();
    const { pid } = ground.redis;
    process.kill(pid, 'SIGSTOP');
    try {
      await Promise.all(errands.map(refuses));
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await Promise.all(errands.map((errand) => comeBack(ground, errand, { kept: false, asked: 1 }, baseUrl)));
  });

  it('when the merchant answers: the answer goes out; down: 503; back: what moved money is read back', async () => {
    const errands = await errandsOf();
    const releases = errands.map((errand) => hold(ground, errand));
    const arrived = Promise.all(errands.map(({ aim }) => ground.merchant.arrived(aim)));
    const answering = Promise.all(errands.map((errand) => ask(errand, baseUrl)));
    await arrived;
    await ground.redis.kill();
    for (const release of releases) release();
    const answers = await answering;
    for (const answer of answers) assert.ok(answer.status < 300, said(answer));

    await Promise.all((await errandsOf()).map(refuses));
    await ground.redis.restart();
    await Promise.all(errands.map((errand, index) => endsAfterwards(errand, answers[index])));
  });

  it('and comes back empty while the merchant works: the answer goes out, and is what everybody is told from then on', async () => {
    const errands = await errandsOf();
    const releases = errands.map((errand) => hold(ground, errand));
    const arrived = Promise.all(errands.map(({ aim }) => ground.merchant.arrived(aim)));
    const answering = Promise.all(errands.map((errand) => ask(errand, baseUrl)));
    await arrived;
    const client = new Redis(ground.redis.socketPath);
    await client.flushall();
    await client.quit();
    for (const release of releases) release();
    for (const [index, answer] of (await answering).entries()) {
      const errand = errands[index] ?? assert.fail();
      assert.ok(answer.status < 300, said(answer));
      await assertKept(errand, answer, baseUrl);
      assertDone(ground, errand, 1);
    }
  });

  async function endsAfterwards(errand: Errand, first: Answered | undefined): Promise<void> {
    const { merchant: backend } = ground;
    const readsBack = /complete|cancel/.test(errand.operation);
    await comeBack(ground, errand, { kept: false, asked: readsBack ? 1 : 2 }, baseUrl);
    const { answer } = await insist(errand, baseUrl);
    if (errand.operation !== 'createCheckoutSession') assert.equal(answer.text, first?.text);
    // A session that nobody knows any more is left to expire: only a merchant who looks at the key
    // makes no second one.
    const keys = backend.calls
      .filter((call) => aimed(errand.aim, call))
      .map(({ headers }) => headers['idempotency-key']);
    assert.equal(new Set(keys).size, 1);
  }
});
