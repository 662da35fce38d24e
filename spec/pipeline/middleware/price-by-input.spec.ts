import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/json/json.ts';
import { formatAmount } from '../../../src/payments/pricing/amount.ts';
import { lowestOf, type PriceRule } from '../../../src/payments/pricing/by-input.ts';
import { createReplacedOffers } from '../../../src/payments/settlement/accepted-offer.ts';
import { createProofVerifier, createUnprovenSignatures } from '../../../src/payments/settlement/verifier.ts';
import { prepareRecovery } from '../../../src/payments/x402/evm/account.ts';
import { createExaminer } from '../../../src/payments/x402/verify/verify.ts';
import { compileOffers } from '../../../src/payments/x402/wire/offers.ts';
import { BUYER_TOKEN, encodeProof } from '../../../src/payments/x402/wire/proof.ts';
import type { PaymentRequirements } from '../../../src/payments/x402/wire/types.ts';
import type { PreparedCall, ProvenCall } from '../../../src/pipeline/call.ts';
import { PendingRefusal } from '../../../src/pipeline/collecting.ts';
import { challenge, createSelling } from '../../../src/pipeline/middleware/challenge.ts';
import { verify } from '../../../src/pipeline/middleware/verify.ts';
import { tokensUnder } from '../../payments/settlement/tokens.ts';
import { authorize, CHECKED_HERE, freshAccount, sign, type Terms, termsFor } from '../../payments/x402/signing.ts';
import { callAt, passed, RESOURCE } from '../calls.ts';

const FIRST: Terms = termsFor();
/** A token with fewer decimals, on the same network. */
const SECOND: Terms = { ...termsFor(), assetDecimals: 2, payTo: FIRST.payTo };
const account = freshAccount();
const { recover } = await prepareRecovery();
const examiners = [FIRST, SECOND].map((terms) => createExaminer({ terms, recover, ...CHECKED_HERE }));
const tokens = tokensUnder();
const MINUTE = 120;

/** A 402: its offers, and the token for the proof. */
interface Asked {
  readonly accepts: readonly PaymentRequirements[];
  readonly token: string;
}

/** One resource with a rule, sold in both tokens, behind the middleware of its price. */
function sellerOf(
  rule: PriceRule,
  { settle, quote = () => assert.fail('asked'), worksUnpaid = () => true }: SellerParts = {},
) {
  const amount = lowestOf(rule);
  const price = (entry: number, decimals: number) => ({
    ...{ amount, currency: 'TUSD', entry },
    units: BigInt(Math.ceil(Number(amount) * 10 ** decimals - 1e-9)),
  });
  const pricing = {
    type: 'fixed',
    ...price(0, 6),
    others: [price(1, 2)],
    by: rule,
    ...(settle && { settle }),
  } as const;
  const resource = { ...RESOURCE, pricing, description: undefined, mimeType: 'application/json' };
  const merchant = { publicBaseUrl: 'https://shop.example' };
  const offers = compileOffers({ merchant, resources: [resource], x402: FIRST, alternatives: [SECOND] }, tokens);
  const selling = createSelling(offers, { askQuote: async () => quote(), worksUnpaid });
  const verifier = createProofVerifier(
    (candidate) => {
      const examine = examiners[candidate.offer.asset === SECOND.asset ? 1 : 0] ?? assert.fail();
      return examine(candidate);
    },
    { unproven: createUnprovenSignatures(), tokens, replaced: createReplacedOffers(), blockedPayers: new Set() },
  );
  const shown = (written: readonly unknown[]): Asked => {
    const [, body] = (written[0] ?? assert.fail('no 402')) as [string, string];
    const { accepts, extensions } = JSON.parse(body).payment.envelope;
    return { accepts, token: extensions[BUYER_TOKEN].info.token };
  };
  const ask = async (input: JsonObject, stage: 'prepared' | 'resolved' = 'prepared'): Promise<Asked> => {
    const call = callAt(stage, { resource, input, proof: { kind: 'none' } });
    const { error } = await passed(challenge(selling), call.res);
    if (error !== undefined) throw error;
    return shown(call.written);
  };
  return {
    ask,
    /** The amount that a proof pays for an input; or the 402 that answers it. */
    async bring(value: string, input: JsonObject): Promise<string | Asked> {
      const call = callAt('prepared', {
        resource,
        input,
        proof: { kind: 'header', value } satisfies PreparedCall['proof'],
      });
      const client = { networkOf: () => 'network', noteProof: () => undefined };
      const { error } = await passed(verify(selling, verifier, client), call.res);
      if ((error as unknown) instanceof PendingRefusal) {
        (error as unknown as PendingRefusal).refuse({ kind: 'none' });
        return shown(call.written);
      }
      if (error !== undefined) throw error;
      const { agreed, payment } = call.call<ProvenCall>();
      assert.equal(payment.payload.payload.authorization.value, agreed.requirements.amount);
      return agreed.requirements.amount;
    },
  };
}

interface SellerParts {
  readonly settle?: 'after';
  readonly quote?: () => bigint;
  readonly worksUnpaid?: () => boolean;
}

async function proofOf({ accepts, token }: Asked, entry = 0, echoed: string | undefined = token): Promise<string> {
  const accepted = accepts[entry] ?? assert.fail('no such offer');
  const authorization = authorize(account.address, accepted, {
    validBefore: String(Math.floor(Date.now() / 1_000) + MINUTE),
  });
  return encodeProof({
    ...{ x402Version: 2, resource: { url: 'https://shop.example/api/resources/report/invoke' }, accepted },
    payload: { signature: await sign(account, authorization, entry === 0 ? FIRST : SECOND), authorization },
    ...(echoed === undefined ? {} : { extensions: { [BUYER_TOKEN]: { info: { token: echoed } } } }),
  });
}

/** Base units of the second token, which are never less money than those of the first. */
const inSecond = (units: bigint): bigint => (units + 9_999n) / 10_000n;

/** A rule with two inputs, and the price of each in base units of the first token. */
interface Case {
  readonly rule: PriceRule;
  readonly one: JsonObject;
  readonly other: JsonObject;
  readonly prices: readonly [bigint, bigint];
}

/** Whole hundredths, so that both tokens hold them. */
const HUNDREDTHS = fc.bigInt({ min: 1n, max: 500n }).map((cents) => cents * 10_000n);
const display = (units: bigint): string => formatAmount(units, 6);
const most = (one: bigint, other: bigint): bigint => (one > other ? one : other);
const least = (one: bigint, other: bigint): bigint => (one < other ? one : other);

/** Digits of a number, and how many of them stand behind the point. */
const NUMBER = fc.tuple(fc.integer({ min: -50, max: 10 ** 8 }), fc.integer({ min: 0, max: 4 }));

const UNITS: fc.Arbitrary<Case> = fc
  .tuple(NUMBER, NUMBER, fc.bigInt({ min: 1n, max: 500_000n }), HUNDREDTHS, HUNDREDTHS)
  .map(([one, other, each, a, b]) => {
    const [min, max] = [least(a, b), most(a, b)];
    const price = ([digits, scale]: readonly [number, number]): bigint => {
      const [product, divisor] = [each * BigInt(Math.max(digits, 0)), 10n ** BigInt(scale)];
      return least(most((product + divisor - 1n) / divisor, min), max);
    };
    const input = ([digits, scale]: readonly [number, number]): JsonObject => ({ n: Number(`${digits}e-${scale}`) });
    return {
      rule: { kind: 'unit', pointer: '/n', of: 'number', amount: display(each), min: display(min), max: display(max) },
      ...{ one: input(one), other: input(other), prices: [price(one), price(other)] },
    };
  });

const TIERS: fc.Arbitrary<Case> = fc
  .tuple(
    fc.uniqueArray(fc.integer({ min: 0, max: 100 }), { minLength: 1, maxLength: 6 }),
    fc.array(HUNDREDTHS, { minLength: 7, maxLength: 7 }),
    fc.nat(100),
    fc.nat(100),
  )
  .map(([bounds, amounts, first, second]) => {
    const ascending = bounds.toSorted((a, b) => a - b);
    const [one, other] = [first, second].map((n) => Math.min(n, ascending.at(-1) ?? 0)) as [number, number];
    const price = (n: number): bigint => amounts[ascending.filter((upTo) => upTo < n).length] ?? 0n;
    const steps = ascending.map((upTo, step) => ({ upTo, amount: display(amounts[step] ?? 0n) }));
    return {
      rule: { kind: 'tier', pointer: '/n', of: 'number', steps },
      ...{ one: { n: one }, other: { n: other }, prices: [price(one), price(other)] },
    };
  });

const CHOICES: fc.Arbitrary<Case> = fc
  .tuple(HUNDREDTHS, HUNDREDTHS, fc.boolean(), fc.boolean())
  .map(([yes, no, one, other]) => ({
    rule: { kind: 'choice', pointer: '/inner/n', amounts: { true: display(yes), false: display(no) } },
    ...{ one: { inner: { n: one } }, other: { inner: { n: other } }, prices: [one ? yes : no, other ? yes : no] },
  }));

describe('a price that follows the input, from its 402 to its proof', () => {
  for (const [kind, cases] of Object.entries({ unit: UNITS, tier: TIERS, choice: CHOICES }))
    it(`by ${kind} is what the oracle says, in both tokens, and buys no dearer input`, async () => {
      await fc.assert(
        fc.asyncProperty(cases, fc.constantFrom(0, 1), async ({ rule, one, other, prices }, entry) => {
          const { ask, bring } = sellerOf(rule);
          const due = prices.map((units) => [`${units}`, `${inSecond(units)}`]);
          const asked = await ask(one);
          assert.deepEqual(
            asked.accepts.map(({ amount }) => amount),
            due[0],
          );
          const proof = await proofOf(asked, entry);
          assert.equal(await bring(proof, one), due[0]?.[entry]);
          const shown = await bring(proof, other);
          if (due[0]?.[entry] === due[1]?.[entry]) assert.equal(shown, due[1]?.[entry]);
          else {
            assert.ok(typeof shown !== 'string', 'refused');
            assert.deepEqual(
              shown.accepts.map(({ amount }) => amount),
              due[1],
            );
            assert.equal(await bring(await proofOf(shown, entry), other), due[1]?.[entry]);
          }
        }),
        { numRuns: 120, seed: 42 },
      );
    });
});

const QUOTE: PriceRule = { kind: 'quote', method: 'POST', path: '/price', min: '0.01', max: '2' };
const SMALL = { n: 1 };
/** More than the token of a fixed price is bound to. */
const LARGE = { n: 'x'.repeat(20_000) };

describe('the token of a quote', () => {
  for (const settle of [undefined, 'after'] as const)
    for (const [size, input] of Object.entries({ small: SMALL, large: LARGE }))
      it(`shows it for its ${size} input, settled ${settle ?? 'before'}, and for no other`, async () => {
        let quoted = 500_000n;
        let times = 0;
        const quote = () => {
          times += 1;
          return quoted;
        };
        // The budget of unpaid work is spent, so `after` is sold with the money first.
        const { ask, bring } = sellerOf(QUOTE, { ...(settle && { settle }), quote, worksUnpaid: () => false });
        const [proof, lowest] = [await proofOf(await ask(input)), await proofOf(await ask({}, 'resolved'))];
        quoted = 2_000_000n;
        assert.deepEqual([await bring(proof, input), times], ['500000', 1]);
        for (const [wrong, bought] of [
          [proof, { n: 2 }],
          [lowest, input],
        ] as const) {
          const shown = await bring(wrong, bought);
          assert.ok(typeof shown !== 'string');
          assert.equal(shown.accepts[0]?.amount, '2000000');
        }
      });
});
