import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { type RawBackend, type RawRequest, rawBackend } from '../../../spec/backend/raw-backend.ts';
import { attack, measured, proven } from '../catalogue.ts';
import { framed, WORDINGS, type Wording, yes } from './bytes.ts';
import { assertHonest, BEARER, type LiarStage, nonceOf, openLiarStage, PRICE_UNITS, payerOf } from './stage.ts';

const NETWORK = 'eip155:31337';

type Question = 'verify' | 'settle';

/** The part of a request to the facilitator that is checked. */
interface Asked {
  readonly paymentPayload: { readonly accepted: unknown };
  readonly paymentRequirements: { readonly payTo: string; readonly amount: string };
}

describe('a facilitator that sends hostile bytes', () => {
  const wordings = new Map<string, Readonly<Record<Question, Wording>>>();
  let liar: RawBackend;
  let canary: RawBackend;
  let stage: LiarStage;
  let sold = 0;
  before(async () => {
    canary = await rawBackend((socket) => void socket.end(framed('{"isValid":true,"success":true}')));
    liar = await rawBackend((socket, request) => {
      if (request.head.startsWith('GET')) {
        // The readiness monitor asks for /supported.
        socket.write(framed('{}'));
        return;
      }
      const [question, nonce, payer] = asked(request);
      const wording = wordings.get(nonce)?.[question] ?? (() => framed('{}'));
      const answer = wording({ payer, network: NETWORK, canary: canary.origin });
      if (typeof answer === 'string') socket.write(answer);
      else answer(socket);
    });
    stage = await openLiarStage(liar.origin);
  });
  after(async () => {
    await stage.close();
    await Promise.all([liar.close(), canary.close()]);
  });

  const valid: Wording = () => framed('{"isValid":true}');
  const settled =
    (transaction: string): Wording =>
    (at) =>
      framed(yes(at, { transaction }));
  /** The facilitator answers correctly again: the proof gets its answer. */
  const recover = async (proof: string, nonce: string, channel: number): Promise<void> => {
    wordings.set(nonce, { verify: valid, settle: settled(await stage.submit(proof)) });
    await stage.collect(proof, channel);
    sold += 1;
  };

  describe('in any answer', { concurrency: true }, () => {
    for (const [at, [what, wording]] of WORDINGS.entries())
      for (const question of ['verify', 'settle'] as const)
        attack('X11', `/${question} answers with ${what}: nothing is delivered, nothing is lost`, async (context) => {
          const { proof, nonce } = await stage.sign();
          wordings.set(nonce, { verify: valid, settle: wording, [question]: wording });
          const seen = await stage.bring(proof, at);
          assertHonest(seen, false);
          assert.equal(await stage.paid(nonce), false);
          measured(context, 'hostile facilitator answers', 1);
          if (seen.outcome !== 'asked') await recover(proof, nonce, at + 1);
        });
  });

  attack(['X10', 'X11'], 'an unrequested answer waits on the connection: the next buyer does not get it', async () => {
    for (let round = 0; round < 10; round += 1) {
      const [first, second] = [await stage.sign(), await stage.sign()];
      const transaction = await stage.submit(first.proof);
      const approval: Wording = (at) => framed('{"isValid":true}') + framed(yes(at, { transaction }));
      wordings.set(first.nonce, { verify: approval, settle: settled(transaction) });
      wordings.set(second.nonce, { verify: valid, settle: () => framed('{"success":false}') });
      await stage.collect(first.proof, round);
      const seen = await stage.bring(second.proof, round);
      assertHonest(seen, false);
      assert.equal(await stage.paid(second.nonce), false);
      sold += 1;
      await recover(second.proof, second.nonce, round);
    }
  });

  attack('X10', 'only the configured requirement was ever sent to it', () => {
    for (const { head, body } of liar.requests.filter(({ head }) => head.startsWith('POST'))) {
      const { paymentPayload, paymentRequirements } = JSON.parse(body.toString()) as Asked;
      assert.deepEqual(paymentRequirements, paymentPayload.accepted);
      assert.equal(paymentRequirements.payTo, stage.testbed.gateway.config.x402?.payTo);
      assert.equal(paymentRequirements.amount, String(PRICE_UNITS));
      assert.match(head, new RegExp(`authorization: Bearer ${BEARER}`, 'i'));
    }
  });

  attack('X11', 'no redirect was followed, and the token went nowhere else', async (context) => {
    assert.equal(canary.accepted(), 0);
    assert.ok(!(await stage.sinks()).includes(BEARER));
    const paidFor = Number((await stage.testbed.income()) / PRICE_UNITS);
    const delivered = stage.testbed.backend.requests.length;
    assert.deepEqual([paidFor, delivered], [sold, sold]);
    measured(context, 'unpaid deliveries', delivered - paidFor);
    measured(context, 'double settlements', paidFor - sold);
  });
});

describe('what other specs prove about facilitators', () => {
  proven(
    'X12',
    'spec/e2e/near-money.spec.ts',
    'PAYMENT_PROVIDER_UNAVAILABLE 503 before settlement, and the same proof works later',
  );
  proven(
    'X12',
    'spec/e2e/near-money.spec.ts',
    'PAYMENT_SETTLEMENT_FAILED 502 after it: uncertain, with no time at which to sign again, never 402',
  );
  proven(
    'X10',
    'spec/payments/x402/hostile.spec.ts',
    'cannot keep an authorization open that no block can take any more',
  );
  proven(
    'X10',
    'spec/payments/x402/create-rail.spec.ts',
    'lets no facilitator overrule a local check, and does not even ask it',
  );
});

function asked({ head, body }: RawRequest): [question: Question, nonce: string, payer: string] {
  const { paymentPayload } = JSON.parse(body.toString()) as { paymentPayload: unknown };
  const proof = Buffer.from(JSON.stringify(paymentPayload)).toString('base64');
  return [head.startsWith('POST /verify') ? 'verify' : 'settle', nonceOf(proof), payerOf(proof)];
}
