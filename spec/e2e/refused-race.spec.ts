import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import {
  type FacilitatorCall,
  type HostileFacilitator,
  relayTo,
  startHostileFacilitator,
} from '../support/hostile-facilitator.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { bring } from './bring.ts';

/** `RACE_ROUNDS=1000 make test SPEC=spec/e2e/refused-race.spec.ts` for the long run. */
const ROUNDS = Number(process.env['RACE_ROUNDS'] ?? 16);
const AT_ONCE = 4;
const RESOURCE = 'market_report';
/**
 * Until the first call has asked, until a copy waits for it, and until the facilitator answers,
 * milliseconds.
 */
const FIRST_ASKS_MS = 15;
const COPY_LEAVES_MS = 30;
const VERDICT_MS = 90;

const nonceOf = ({ body }: FacilitatorCall): string =>
  (body as { paymentPayload: { payload: { authorization: { nonce: string } } } }).paymentPayload.payload.authorization
    .nonce;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

for (const store of ['sqlite', 'redis'] as const)
  describe(`a proof that the facilitator refuses once while copies of it wait (${store})`, () => {
    let redis: TestRedis | undefined;
    let hostile: HostileFacilitator;
    let official: Facilitator;
    let testbed: Testbed;
    before(async () => {
      hostile = await startHostileFacilitator('eip155:31337');
      if (store === 'redis') redis = await startRedis({ args: ['--appendonly', 'no'] });
      const storage = redis === undefined ? {} : { storage: { redis: { url: redis.url } } };
      testbed = await openTestbed({ facilitator: { mode: 'remote', url: hostile.url }, ...storage });
      official = await startFacilitator(testbed.chain);
      const asked = new Map<string, number>();
      hostile.script({
        async verify(call) {
          const nonce = nonceOf(call);
          const before = asked.get(nonce) ?? 0;
          asked.set(nonce, before + 1);
          await pause(VERDICT_MS);
          if (before > 0) return { kind: 'json', body: { isValid: true } };
          return { kind: 'json', body: { isValid: false, invalidReason: 'insufficient_funds' } };
        },
        settle: relayTo(official.url),
      });
    });
    after(async () => {
      await testbed?.close();
      await Promise.all([hostile?.stop(), official?.stop(), redis?.stop()]);
    });

    /** Whether the proof was settled after its buyer was asked to pay anew. */
    const raced = async (round: number): Promise<void> => {
      const input = { city: `Berlin-${round}` };
      const proof = await testbed.proof(RESOURCE, input);
      const leaving = new AbortController();
      const first = bring(testbed.gateway, RESOURCE, input, { proof });
      await pause(FIRST_ASKS_MS);
      const gone = fetch(`${testbed.gateway.url}/api/resources/${RESOURCE}/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'payment-signature': proof },
        body: JSON.stringify(input),
        signal: leaving.signal,
      }).then(
        (answer) => answer.status,
        () => 0,
      );
      const staying = bring(testbed.gateway, RESOURCE, input, { proof });
      await pause(COPY_LEAVES_MS);
      leaving.abort();
      const answers = [(await first).status, await gone, (await staying).status];
      assert.ok(answers.includes(402), `no call was refused: ${answers.join()}`);
      answers.push((await bring(testbed.gateway, RESOURCE, input, { proof })).status);
      assert.deepEqual(
        answers.filter((status) => status !== 402 && status !== 0),
        [],
      );
    };

    it(`is never settled afterwards, whichever call waits, leaves or comes later (${ROUNDS} rounds)`, async (t) => {
      let begun = 0;
      const racer = async (): Promise<void> => {
        for (let round = begun++; round < ROUNDS; round = begun++) await raced(round);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, racer));
      const settled = hostile.calls.filter(({ path }) => path === '/settle').length;
      t.diagnostic(`${ROUNDS} rounds, ${settled} settled after a 402`);
      assert.deepEqual([settled, await testbed.income()], [0, 0n]);
    });
  });
