import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Price } from '../../../src/payments/pricing/amount.ts';
import type { PriceRule } from '../../../src/payments/pricing/by-input.ts';
import { createAcceptedOffers, createReplacedOffers } from '../../../src/payments/settlement/accepted-offer.ts';
import type { FixedPricing } from '../../../src/payments/x402/wire/challenge.ts';
import { compileOffers, type Offer, type Offered } from '../../../src/payments/x402/wire/offers.ts';
import { termsFor } from '../x402/signing.ts';
import { tokensUnder } from './tokens.ts';

const START = 1_800_000_000_000;
const QUOTE = { kind: 'quote', method: 'POST', path: '/price', min: '0.01', max: '2' } as const;
const [OWN, OTHER] = ['5e'.repeat(32), 'a1'.repeat(32)];
/** Two tokens of one currency, whose offers last for 120 and for 3,600 s. */
const near = termsFor(undefined, 1);
const far = { ...termsFor(undefined, 2), maxTimeoutSeconds: 3_600 };
const clock = { nowMs: START };
const tokens = tokensUnder(['one'], () => clock.nowMs);

interface Sale {
  readonly units?: bigint;
  /** Entries that are offered, the preferred one first; the others are not. */
  readonly offered?: readonly number[];
  readonly by?: PriceRule;
  readonly nearSeconds?: number;
}

/** The offers of one resource. */
function offersOf({ units = 10_000n, offered = [0, 1], by, nearSeconds = 120 }: Sale = {}) {
  const priceIn = (entry: number): Price => ({ amount: '0.01', currency: 'TUSD', units, entry });
  const [first = 0, ...others] = offered;
  const ended = [0, 1].filter((entry) => !offered.includes(entry)).map(priceIn);
  const pricing: FixedPricing = {
    type: 'fixed',
    ...priceIn(first),
    others: others.map(priceIn),
    ended,
    ...(by && { by }),
  };
  const report = { id: 'report', name: 'report', description: undefined, mimeType: 'application/json' };
  const resources = [{ ...report, backend: { timeoutMs: 10_000 }, pricing }];
  const x402 = { ...near, maxTimeoutSeconds: nearSeconds };
  return compileOffers(
    { merchant: { publicBaseUrl: 'https://shop.example' }, resources, x402, alternatives: [far] },
    tokens,
  );
}
const of = (sale?: Sale): Offer => offersOf(sale).get('report') ?? assert.fail();
const inEntry = (offer: Offered, entry: number) =>
  [offer, ...offer.others].find((one) => one.entry === entry)?.requirements ?? assert.fail(`${entry} is not offered`);

/** How a process takes a proof for one entry of `made`. */
function taken(
  made: Offer,
  entry: number,
  present: Offer,
  { bind = OWN, echoes = true, replaced = createReplacedOffers(), laterMs = 0 } = {},
) {
  const buyerToken = echoes ? made.issueToken(OWN) : undefined;
  clock.nowMs = START + laterMs;
  const asked = {
    accepted: inEntry(made, entry),
    buyerToken,
    bind: () => bind,
    nowMs: clock.nowMs,
  };
  const { agreed, over, token: read } = createAcceptedOffers(tokens, replaced).of(present, asked);
  const { amount, network } = agreed.requirements;
  clock.nowMs = START;
  return {
    paid: amount === asked.accepted.amount && network === asked.accepted.network && !over,
    over,
    mine: (read?.genuineForMs ?? 0) > 0,
  };
}

describe('the offer that a proof accepts', () => {
  const dear = of({ units: 20_000n });

  it('of before is accepted on any process by its token, in each asset of its currency', () => {
    for (const entry of [0, 1]) assert.deepEqual(taken(of(), entry, dear), { paid: true, over: false, mine: true });
  });

  it('of before is refused without its token by a process that never made it', () => {
    assert.equal(taken(of(), 0, dear, { echoes: false }).paid, false);
  });

  it('of before was for every input where the price is one for all', () => {
    assert.equal(taken(of(), 0, dear, { bind: OTHER }).paid, true);
    const quoted = of({ by: QUOTE }).byInput?.at(15_000n) ?? assert.fail();
    assert.equal(taken(quoted, 0, dear).paid, true);
    assert.equal(taken(quoted, 0, dear, { bind: OTHER }).paid, false);
  });

  it('lasts for its own time without a token, not for that of another asset', () => {
    const replaced = createReplacedOffers(() => clock.nowMs);
    replaced.replace(offersOf(), offersOf({ units: 20_000n }));
    const bare = { echoes: false, replaced };
    assert.equal(taken(of(), 0, dear, { ...bare, laterMs: 120_000 }).paid, true);
    assert.equal(taken(of(), 0, dear, { ...bare, laterMs: 120_001 }).paid, false);
    assert.equal(taken(of(), 1, dear, { ...bare, laterMs: 3_600_000 }).paid, true);
  });

  it('lasts for its own time with a token too, whose time is that of the first asset', () => {
    const made = of({ offered: [1, 0] });
    const present = of({ units: 20_000n, offered: [1, 0] });
    assert.equal(taken(made, 0, present, { laterMs: 120_000 }).paid, true);
    assert.equal(taken(made, 0, present, { laterMs: 122_000 }).paid, false);
    assert.equal(taken(made, 1, present, { laterMs: 122_000 }).paid, true);
  });

  it('in an asset that is not offered now is over, at its price or the one that its token shows', () => {
    const present = of({ units: 20_000n, offered: [0] });
    assert.deepEqual(taken(of({ units: 20_000n }), 1, present, { echoes: false }), {
      paid: false,
      over: true,
      mine: false,
    });
    assert.deepEqual(taken(of(), 1, present), { paid: false, over: true, mine: true });
    assert.equal(taken(of(), 1, present, { echoes: false }).over, false, 'a price that nothing shows');
  });

  for (const [what, made, present] of [
    ['another asset is the first by now', { offered: [1] }, { offered: [0, 1] }],
    ['the first asset is not offered any more', { offered: [0, 1] }, { offered: [1] }],
  ] as const)
    it(`keeps the secret of its buyer where ${what}`, () => {
      assert.deepEqual(taken(of(made), 1, of(present)), { paid: true, over: false, mine: true });
      const [quoted, now] = [
        of({ ...made, by: QUOTE }).byInput?.at(15_000n) ?? assert.fail(),
        of({ ...present, by: QUOTE }),
      ];
      const asked = { accepted: inEntry(quoted, 1), buyerToken: quoted.issueToken(OWN), bind: () => OWN, nowMs: START };
      const { priceShown } = createAcceptedOffers(tokens, createReplacedOffers());
      assert.equal(priceShown(now, asked), 15_000n);
      assert.equal(priceShown(now, { ...asked, bind: () => OTHER }), undefined);
    });

  it('keeps the secret of its buyer where the first asset has another time, on the process that had the old one', () => {
    const replaced = createReplacedOffers(() => clock.nowMs);
    replaced.replace(offersOf({ by: QUOTE }), offersOf({ by: QUOTE, nearSeconds: 60 }));
    const quoted = of({ by: QUOTE }).byInput?.at(15_000n) ?? assert.fail();
    const present = of({ by: QUOTE, nearSeconds: 60 }).byInput?.at(15_000n) ?? assert.fail();
    assert.deepEqual(taken(quoted, 1, present, { replaced }), { paid: true, over: false, mine: true });
  });
});
