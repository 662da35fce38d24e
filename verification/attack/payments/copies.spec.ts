import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { ask } from '../../../spec/e2e/ask.ts';
import { found, spellingsOfOneAuthorization } from '../../../spec/e2e/proofs.ts';
import { receiptWhen } from '../../../spec/support/records.ts';
import { openTestbed, type Testbed } from '../../../spec/support/testbed.ts';
import { attack, measured, times } from '../catalogue.ts';
import { ALL_CHANNELS, buy, CHANNELS, type Seen } from './channels.ts';

const INPUT = { city: 'Berlin' };
/** The price of `held`, base units. */
const HELD_UNITS = 1_000n;
/** Copies of each spelling. */
const COPIES = times(5, 100);
/** How long one proof is repeated, milliseconds. */
const REPLAYED_MS = times(1_500, 60_000);
/** Copies in flight that the client opens; the gateway may admit fewer. */
const AT_ONCE = 50;

describe('one proof, brought any number of times', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: { ...ALL_CHANNELS, limits: { maxInFlight: 10_000 } } });
  });
  after(() => testbed.close());

  attack(
    ['X2', 'X3', 'X16', 'I2'],
    'twenty spellings, many copies of each, over three channels at once: one settlement, one execution',
    async (context) => {
      const { gateway, backend } = testbed;
      const income = await testbed.income();
      const spellings = spellingsOfOneAuthorization(await testbed.proof('held'));
      backend.hold();
      backend.forget();
      const arrived = backend.nextRequest('/held');
      const copies = spellings.flatMap((proof, at) =>
        Array.from({ length: COPIES }, (_, n) => {
          const channel = CHANNELS[(at + n) % CHANNELS.length] ?? 'http';
          return buy(gateway.url, channel, { resourceId: 'held', proof });
        }),
      );
      await arrived;
      // Answered on the last opened connection: the gateway has accepted all others.
      await ask(gateway.url, { method: 'GET', path: '/health', headers: {} });
      backend.release();
      const answers = await Promise.all(copies);
      const settled = (await testbed.income()) - income;
      assert.equal(settled, HELD_UNITS);
      assert.equal(backend.requests.length, 1);
      for (const seen of answers)
        if (seen.outcome === 'delivered') assert.equal(seen.bytes.toString(), '{"held":true}');
        else assert.ok(seen.code === 'PAYMENT_REPLAYED' || seen.code === 'GATEWAY_BUSY', seen.everything);
      assert.ok(answers.some(({ outcome }) => outcome === 'delivered'));
      measured(context, 'spellings of one proof', new Set(spellings).size);
      measured(context, 'copies of each spelling', COPIES);
      measured(context, 'settlements of one proof', Number(settled / HELD_UNITS));
    },
    { timeout: 120_000 },
  );

  attack(
    ['X16', 'X2', 'I1', 'I7'],
    'a used proof, repeated without end in every spelling: no second answer',
    async (context) => {
      const { gateway, backend } = testbed;
      const proof = await testbed.proof('market_report', INPUT);
      const first = await buy(gateway.url, 'http', { resourceId: 'market_report', input: INPUT, proof });
      assert.equal(first.outcome, 'delivered');
      await receiptWhen(gateway, first.requestId, true);
      const [income, executions] = [await testbed.income(), backend.requests.length];
      // As the block shows it: with the buyer's token it would get the kept answer for a minute.
      const spellings = spellingsOfOneAuthorization(found(proof));
      const variants = [
        { resourceId: 'market_report', input: INPUT },
        { resourceId: 'market_report', input: { city: 'Lisboa' } },
        { resourceId: 'market_report', input: INPUT, headers: { 'idempotency-key': 'a key that was not there' } },
        { resourceId: 'price_list', input: {} },
      ];
      const deadline = performance.now() + REPLAYED_MS;
      let replayed = 0;
      const replay = async (runner: number): Promise<void> => {
        for (let n = runner; performance.now() < deadline; n += AT_ONCE) {
          const variant = variants[n % variants.length] ?? { resourceId: 'market_report' };
          const channel = CHANNELS[n % CHANNELS.length] ?? 'http';
          const seen = await buy(gateway.url, channel, { ...variant, proof: spellings[n % spellings.length] });
          worthless(seen);
          replayed += 1;
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, (_, runner) => replay(runner)));
      assert.deepEqual([await testbed.income(), backend.requests.length], [income, executions]);
      assert.ok(replayed > AT_ONCE, `${replayed} replays`);
      context.diagnostic(`${replayed} replays of one proof`);
    },
    { timeout: REPLAYED_MS + 60_000 },
  );
});

/** No answer and no second 402 for an authorization that has paid. */
function worthless(seen: Seen): void {
  assert.equal(seen.outcome, 'failed', seen.everything);
  assert.ok(seen.code === 'PAYMENT_REPLAYED' || seen.code === 'GATEWAY_BUSY', seen.everything);
}
