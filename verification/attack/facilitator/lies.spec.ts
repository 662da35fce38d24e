import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { LIES, type Lie, NO_VERDICT } from '../../../spec/payments/x402/hostile.ts';
import {
  type FacilitatorCall,
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  type Script,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../../../spec/support/hostile-facilitator.ts';
import { attack, isLongRun, measured } from '../catalogue.ts';
import { assertHonest, BEARER, type LiarStage, nonceOf, openLiarStage, PRICE_UNITS, payerOf } from './stage.ts';

const NETWORK = 'eip155:31337';
const HOLDS = new Set(['hang', 'drip']);
/** Only the long run has those that delay a settlement for its whole minute. */
const ANSWERS: readonly (readonly [what: string, lie: Lie])[] = [
  ...LIES,
  ...NO_VERDICT.filter(([, { kind }]) => isLongRun || !HOLDS.has(kind)).map(([what, answer]): [string, Lie] => [
    what,
    () => answer,
  ]),
];
/** The true state of the payment. */
const FATES = ['unpaid', 'paid'] as const;

describe('a facilitator that lies to a whole gateway', () => {
  const scripts = new Map<string, { readonly verify: Script; readonly settle: Script }>();
  let liar: HostileFacilitator;
  let stage: LiarStage;
  let foreign: string;
  let sold = 0;
  before(async () => {
    liar = await startHostileFacilitator(NETWORK);
    const about = (call: FacilitatorCall): string => {
      const { paymentPayload } = call.body as { paymentPayload: unknown };
      return nonceOf(Buffer.from(JSON.stringify(paymentPayload)).toString('base64'));
    };
    const answering =
      (name: 'verify' | 'settle'): Script =>
      async (call) =>
        (await scripts.get(about(call))?.[name](call)) ?? { kind: 'reset' };
    liar.script({ verify: answering('verify'), settle: answering('settle') });
    stage = await openLiarStage(liar.url);
    foreign = await stage.submit((await stage.sign()).proof);
  });
  after(async () => {
    await stage.close();
    await liar.stop();
  });

  const valid: Script = () => ({ kind: 'json', body: { isValid: true } });
  const settles = (proof: string): Script => {
    let settled: Promise<string> | undefined;
    return async () => {
      settled ??= stage.submit(proof);
      const body = { success: true, transaction: await settled, network: NETWORK, payer: payerOf(proof) };
      return { kind: 'json', body };
    };
  };
  const scripted = (lie: Lie, proof: string, transaction: string): ScriptedAnswer =>
    lie({ network: NETWORK, payer: payerOf(proof), transaction, foreign });

  describe('in any answer', { concurrency: true }, () => {
    for (const [at, [what, lie]] of ANSWERS.entries()) {
      for (const fate of FATES)
        attack(
          ['X10', 'X11'],
          `/settle answers "${what}" for a payment that is ${fate}: the chain decides`,
          async (context) => {
            const { proof, nonce } = await stage.sign();
            let moved: Promise<string> | undefined;
            const settle: Script = async () => {
              if (fate === 'paid') moved ??= stage.submit(proof);
              return scripted(lie, proof, (await moved) ?? INVENTED_TRANSACTION);
            };
            scripts.set(nonce, { verify: valid, settle });
            const seen = await stage.bring(proof, at);
            assertHonest(seen, await stage.paid(nonce));
            assert.equal(await stage.paid(nonce), fate === 'paid');
            measured(context, 'hostile facilitator answers', 1);
            if (seen.outcome === 'asked') return;
            // In the end the same proof gets its answer: once, and for one price.
            const honest = settles(proof);
            scripts.set(nonce, { verify: valid, settle: fate === 'paid' ? settle : honest });
            await stage.collect(proof, at + 1);
            sold += 1;
          },
        );

      attack(
        ['X10', 'X11'],
        `/verify answers "${what}" for a paid proof: no buyer is asked to pay twice`,
        async (context) => {
          const { proof, nonce } = await stage.sign();
          const transaction = await stage.submit(proof);
          const answer = scripted(lie, proof, transaction);
          const verdict = answer.kind === 'json' ? { ...answer, body: asVerdict(answer.body) } : answer;
          scripts.set(nonce, { verify: () => verdict, settle: () => ({ kind: 'reset' }) });
          const seen = await stage.bring(proof, at);
          assertHonest(seen, true);
          const truth = scripted(
            (situation) => ({ kind: 'json', body: { success: true, ...situation } }),
            proof,
            transaction,
          );
          scripts.set(nonce, { verify: valid, settle: () => truth });
          await stage.collect(proof, at + 1);
          sold += 1;
          measured(context, 'hostile facilitator answers', 1);
        },
      );
    }
  });

  attack(
    ['X10', 'X11'],
    'after all lies: one price for each delivery, and the token is disclosed nowhere',
    async (context) => {
      // The first payment bought nothing: lies name it as the payment of other proofs.
      const paidFor = Number((await stage.testbed.income()) / PRICE_UNITS) - 1;
      assert.equal(paidFor, sold);
      const asked = stage.testbed.backend.requests.length;
      assert.equal(asked, sold, 'one backend request for each');
      measured(context, 'unpaid deliveries', asked - paidFor);
      measured(context, 'double settlements', paidFor - sold);
      assert.ok(!(await stage.sinks()).includes(BEARER));
    },
  );
});

/** The same lie as an answer of `/verify`. */
function asVerdict(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const { success: isValid, errorReason: invalidReason, ...rest } = body as Readonly<Record<string, unknown>>;
  return { isValid, invalidReason, ...rest };
}
