import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createIssuedCheckouts } from '../../../src/mandates/ap2/checkout.ts';
import type { MandateVerdict, RefusedMandate } from '../../../src/mandates/ap2/reasons.ts';
import { createMandateVerifier } from '../../../src/mandates/ap2/verify.ts';
import type { MandateClaim } from '../../../src/mandates/register.ts';
import { isMandateClaim } from '../../../src/mandates/stored-mandate.ts';
import {
  amountRange,
  budget,
  type Constraint,
  recurrence,
  reference,
} from '../../../tools/mandate/maker/constraints.ts';
import { closedCheckout, closedPayment } from '../../../tools/mandate/maker/contents.ts';
import {
  type Disclosure,
  discloseElement,
  envelopeOf,
  headerOf,
  placeholder,
  sdJwt,
  signJwt,
} from '../../../tools/mandate/maker/tokens.ts';
import { type Hand, withClaims, withMandate } from '../../support/ap2/hands.ts';
import { BANK, KID_ONLY, PROVIDER, publishedJwk } from '../../support/ap2/keys.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { hashed } from '../../support/ap2/oracle.ts';
import { freePurchase, MERCHANT, NOW, profileWith, purchaseWith } from '../../support/ap2/purchase.ts';
import { trustIn } from '../../support/ap2/trust.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import { type Presentation, withReference } from '../../support/ap2/wishes.ts';

const mint = createMint();
const verify = verifierFor(mint);
const { network = '', payer = '' } = purchaseWith().payment ?? {};
const ACCOUNT = { network, payer };
const MONTHLY = { units: '10000', budgetUnits: '30000', maxOccurrences: 3, periodStart: Date.UTC(2026, 10) / 1_000 };

async function claimOf({ header }: Pick<Presentation, 'header'>, now = NOW): Promise<MandateClaim> {
  const verdict = await verify(header, { now });
  assert.ok(verdict.kind === 'accepted', verdict.kind === 'refused' ? verdict.reason : '');
  assert.ok(isMandateClaim(verdict.claim));
  return verdict.claim;
}

function identity(segment = ''): string {
  const [jwt = ''] = segment.split('~');
  return hashed(jwt.slice(0, jwt.lastIndexOf('.')));
}

/** Open payment mandates that may be used again. */
function again(...more: readonly Constraint[]) {
  const limits = [amountRange('USDC', 10_000), budget('USDC', 0.03), recurrence('MONTHLY', 3)];
  return withReference(...limits, ...more);
}

/** What of a recurring mandate makes it one that is used once. */
const ONCE: Hand = {
  content: ({ mandate, disclosures }) => ({
    mandate: {
      ...mandate,
      constraints: (mandate['constraints'] as readonly { readonly type: string }[]).filter(
        ({ type }) => type !== 'payment.agent_recurrence',
      ) as never,
    },
    disclosures,
  }),
};

describe('what a mandate uses up (ap2 7.3, ap2 10)', () => {
  it('is the closed mandate and its checkout, once, until the checkout cannot be used any more and ten minutes longer', async () => {
    const made = mint.direct();
    const claim = await claimOf(made);
    assert.deepEqual(claim, {
      at: NOW,
      age: 20,
      once: [`m:${identity(made.segments[0])}`, `j:${made.jti}`],
      // Made 20 s ago for 300 s; 60 s of skew.
      onceUntil: NOW - 20 + 300 + 60 + 600,
      open: [],
    });
  });

  it('is every open mandate, once, until it ends and ten minutes longer', async () => {
    const made = mint.autonomous({ payment: true, delegated: true, life: 1_000 });
    const { open } = await claimOf(made);
    const ids = [...made.open.checkout, ...made.open.payment].map(identity);
    assert.deepEqual(
      open,
      ids.map((id, i) => ({ id, age: i % 2 === 0 ? 3_600 : 60, until: NOW + 1_000 + 60 + 600, recurrence: undefined })),
    );
  });

  it('remembers an open mandate until the earlier of its two ends', async () => {
    const open: Hand = { draft: (draft) => ({ ...draft, claims: { ...draft.claims, exp: NOW + 500 } }) };
    const [token] = (await claimOf(mint.autonomous({ hands: { open } }))).open;
    assert.equal(token?.until, NOW + 500 + 60 + 600);
    const content = withMandate({ exp: NOW + 400 });
    const [mandate] = (await claimOf(mint.autonomous({ hands: { open: { ...open, ...content } } }))).open;
    assert.equal(mandate?.until, NOW + 400 + 60 + 600);
  });

  it('is a share of what a mandate allows that may be used again, and the checkout mandate beside it shares that', async () => {
    const { open } = await claimOf(mint.autonomous({ payment: true, paymentConstraints: again() }));
    assert.deepEqual(
      open.map(({ recurrence }) => recurrence),
      [MONTHLY, MONTHLY],
    );
  });

  it('counts the smallest of several budgets, the fewest uses and the longest period', async () => {
    const paymentConstraints = again(budget('USDC', 0.02), recurrence('ANNUALLY', 2), recurrence('ON_DEMAND'));
    const { open } = await claimOf(mint.autonomous({ payment: true, paymentConstraints }));
    const tightest = { ...MONTHLY, budgetUnits: '20000', maxOccurrences: 2, periodStart: Date.UTC(2026, 0) / 1_000 };
    assert.deepEqual(
      open.map(({ recurrence }) => recurrence),
      [tightest, tightest],
    );
  });

  it('leaves out what uses at will do not have', async () => {
    const paymentConstraints = withReference(
      amountRange('USDC', 10_000),
      budget('USDC', 0.03),
      recurrence('ON_DEMAND'),
    );
    const { open } = await claimOf(mint.autonomous({ payment: true, paymentConstraints }));
    const atWill = { units: '10000', budgetUnits: '30000', maxOccurrences: undefined, periodStart: undefined };
    assert.deepEqual(open[1]?.recurrence, atWill);
  });

  it('lets a budget alone be used once', async () => {
    const paymentConstraints = withReference(budget('USDC', 0.03));
    const { open } = await claimOf(mint.autonomous({ payment: true, paymentConstraints }));
    assert.deepEqual(
      open.map(({ recurrence }) => recurrence),
      [undefined, undefined],
    );
  });

  it('goes side by side along two chains: root with root, sub-agent with sub-agent', async () => {
    const wishes = { payment: true, delegated: true, paymentConstraints: again() } as const;
    const used = async (hands: Parameters<typeof mint.autonomous>[0] & object) =>
      (await claimOf(mint.autonomous({ ...wishes, ...hands }))).open.map(({ recurrence }) => recurrence !== undefined);
    assert.deepEqual(await used({}), [true, true, true, true]);
    assert.deepEqual(await used({ hands: { paymentSubAgent: ONCE } }), [true, false, true, false]);
    assert.deepEqual(await used({ hands: { openPayment: ONCE } }), [false, true, false, true]);
  });

  it('names one token once that closes both', async () => {
    const { jwt, jti } = mint.checkout();
    const { provider } = mint.parties;
    const terms = { checkoutJwt: jwt, payee: MERCHANT, amount: 10_000, currency: 'USDC', ...ACCOUNT };
    const [checkout, payment] = [closedCheckout(jwt), closedPayment(terms)];
    const [shownCheckout, shownPayment] = [checkout, payment].map(({ mandate }) => discloseElement(mandate)) as [
      Disclosure,
      Disclosure,
    ];
    const claims = {
      ...{ iss: PROVIDER, iat: NOW - 10, exp: NOW + 290, _sd_alg: 'sha-256' },
      delegate_payload: [shownCheckout, shownPayment].map(placeholder),
    };
    const token = signJwt({ alg: 'ES256', typ: 'dc+sd-jwt', kid: provider.publicJwk.kid }, claims, provider);
    const shown = (...disclosures: readonly Disclosure[]) =>
      sdJwt(
        token,
        disclosures.map(({ text }) => text),
      );
    const envelope = envelopeOf(shown(...checkout.disclosures, shownCheckout), shown(shownPayment));
    const { once } = await claimOf({ header: headerOf(envelope) });
    assert.deepEqual(once, [`m:${identity(token)}`, `j:${jti}`]);
  });

  it('has its time in whole seconds, and ages that are not rounded down', async () => {
    const { at, age, open } = await claimOf(mint.autonomous(), NOW + 0.875);
    assert.deepEqual([at, age, open[0]?.age], [NOW, 20.875, 3_600.875]);
  });

  it('knows the age of a checkout to the second, or to the millisecond with iat_ms', async () => {
    const second = NOW - 20;
    const exact = mint.direct({
      checkout: { change: (token) => ({ ...token, claims: { ...token.claims, iat_ms: second * 1_000 + 750 } }) },
    });
    assert.equal((await claimOf(mint.direct(), NOW + 0.5)).age, 20.5);
    assert.equal((await claimOf(exact, NOW + 0.5)).age, 19.75);
  });

  it('takes the age of an open mandate from its token, or from the mandate, or does not know it', async () => {
    const untimed: Hand = {
      draft({ claims: { iat: _iat, ...claims }, ...draft }) {
        return { ...draft, claims };
      },
    };
    const ages = async (open: Hand) => (await claimOf(mint.autonomous({ hands: { open } }))).open.map(({ age }) => age);
    assert.deepEqual(await ages(withMandate({ iat: NOW - 70 })), [3_600]);
    assert.deepEqual(await ages({ ...untimed, ...withMandate({ iat: NOW - 70 }) }), [70]);
    assert.deepEqual(await ages({ ...untimed, ...withMandate({ iat: undefined }) }), [undefined]);
  });
});

async function refused(verdict: Promise<MandateVerdict>): Promise<RefusedMandate> {
  const given = await verdict;
  assert.ok(given.kind === 'refused');
  return given;
}

/** What a receipt for it refers to. */
function referenceOf({ segments }: Presentation) {
  const leaf = segments.at(-1) ?? '';
  return { reference: hashed(leaf.split('~')[0] ?? ''), referenceSdHash: hashed(leaf) };
}

describe('the verdict on a mandate', () => {
  it('names nothing of what could not be read', async () => {
    for (const header of [undefined, '', 'AAAA', '!'])
      assert.deepEqual(
        { ...(await refused(verify(header))), reason: '' },
        { kind: 'refused', reason: '', reference: undefined, issuer: undefined },
      );
  });

  it('distinguishes a missing mandate, an illegible one, and two that differ', async () => {
    const verifier = createMandateVerifier({
      profile: profileWith(),
      trust: trustIn(mint.parties),
      checkoutKeys: [publishedJwk(mint.parties.checkout)],
      minted: createIssuedCheckouts(),
    });
    const reasonOf = async (kind: 'none' | 'illegible' | 'conflicting') =>
      (await refused(verifier({ kind }, purchaseWith(), NOW))).reason;
    assert.deepEqual(await Promise.all((['none', 'illegible', 'conflicting'] as const).map(reasonOf)), [
      'mandate_required',
      'envelope_encoding',
      'envelope_encoding',
    ]);
  });

  it('refers to the leaf of the checkout mandate, and names no issuer before a signature was good', async () => {
    const made = mint.autonomous({ issuer: { key: mint.parties.stranger, iss: PROVIDER } });
    const { reference, issuer, mandate } = await refused(verify(made.header));
    assert.deepEqual([reference, issuer, mandate], [referenceOf(made), undefined, 'checkout']);
  });

  it('names the issuer once its signature was good, whatever is wrong behind it', async () => {
    for (const hands of [{ closed: withClaims({ aud: 'other' }) }, { closed: withMandate({ checkout_hash: 'x' }) }]) {
      const made = mint.autonomous({ hands });
      const { reference, issuer } = await refused(verify(made.header));
      assert.deepEqual([reference, issuer], [referenceOf(made), PROVIDER]);
    }
  });

  it('refers to the checkout mandate too where the payment mandate is wrong', async () => {
    const made = mint.autonomous({ payment: true, hands: { closedPayment: withMandate({ payee: undefined }) } });
    const { reference, issuer, mandate } = await refused(verify(made.header));
    assert.deepEqual([reference, issuer, mandate], [referenceOf(made), PROVIDER, 'payment']);
  });

  it('has a cause for the log where the keys of an issuer cannot be had', async () => {
    const cause = new Error('no answer');
    const verifier = createMandateVerifier({
      profile: profileWith(),
      trust: { find: () => ({ kind: 'unavailable', cause }) },
      checkoutKeys: [publishedJwk(mint.parties.checkout)],
      minted: createIssuedCheckouts(),
    });
    const carried = { kind: 'text', value: mint.direct().header } as const;
    const given = await refused(verifier(carried, purchaseWith(), NOW));
    assert.deepEqual([given.reason, given.cause], ['provider_unavailable', cause]);
  });

  it('is no verdict where the gateway itself fails', async () => {
    const bug = new TypeError('a bug');
    const verifier = createMandateVerifier({
      profile: profileWith(),
      trust: {
        find: () => {
          throw bug;
        },
      },
      checkoutKeys: [],
      minted: createIssuedCheckouts(),
    });
    const carried = { kind: 'text', value: mint.direct().header } as const;
    await assert.rejects(verifier(carried, purchaseWith(), NOW), bug);
  });

  it('cannot be had with two checkout keys of one id', () => {
    const jwk = publishedJwk(mint.parties.checkout);
    const parts = { profile: profileWith(), trust: trustIn(mint.parties), minted: createIssuedCheckouts() };
    assert.throws(() => createMandateVerifier({ ...parts, checkoutKeys: [jwk, jwk] }), /one kid/);
  });
});

const { kidOnly } = mint.parties;
const paymentConstraints = (hash: string) => [
  amountRange('USDC', 30_000),
  budget('USDC', 0.03),
  recurrence('ON_DEMAND', 2),
  reference(hash),
];

const KINDS: readonly (readonly [kind: string, made: Presentation, mode: string, issuer: string])[] = [
  ['an autonomous mandate', mint.autonomous(), 'autonomous', PROVIDER],
  ['one that pays', mint.autonomous({ payment: true }), 'autonomous', PROVIDER],
  ['one of a sub-agent', mint.autonomous({ delegated: true }), 'autonomous', PROVIDER],
  ['one of a sub-agent that pays', mint.autonomous({ delegated: true, payment: true }), 'autonomous', PROVIDER],
  ['one that may be used again', mint.autonomous({ payment: true, paymentConstraints }), 'autonomous', PROVIDER],
  [
    'one of an issuer without iss',
    mint.autonomous({ issuer: { key: kidOnly, iss: undefined } }),
    'autonomous',
    KID_ONLY,
  ],
  ['a direct mandate', mint.direct(), 'direct', PROVIDER],
  ['a direct one that pays', mint.direct({ payment: true }), 'direct', PROVIDER],
  ['one under a credential', mint.credential(), 'direct', BANK],
];

describe('a mandate of the test maker', () => {
  for (const [kind, made, mode, issuer] of KINDS)
    it(`is accepted: ${kind}`, async () => {
      const verdict = await verify(made.header);
      assert.equal(verdict.kind, 'accepted', verdict.kind === 'refused' ? verdict.reason : '');
      if (verdict.kind !== 'accepted') return;
      assert.deepEqual([verdict.mode, verdict.issuer, verdict.checkoutId], [mode, issuer, made.jti]);
      const leaf = made.segments.at(-1) ?? '';
      const [jwt = ''] = leaf.split('~');
      assert.equal(verdict.reference, hashed(jwt));
      assert.equal(verdict.referenceSdHash, hashed(leaf));
      assert.equal(verdict.mandateId, hashed(jwt.slice(0, jwt.lastIndexOf('.'))));
      const ids = [leaf, made.paymentSegments.at(-1)].filter((one) => one !== undefined).map(identity);
      assert.deepEqual([...verdict.claim.once].sort(), [...ids.map((id) => `m:${id}`), `j:${made.jti}`].sort());
      const opened = [...made.open.checkout, ...made.open.payment].map(identity);
      assert.deepEqual(verdict.claim.open.map(({ id }) => id).sort(), opened.sort());
    });

  it('is accepted for what costs nothing', async () => {
    const purchase = freePurchase();
    const verdict = await verify(mint.autonomous({ purchase }).header, { purchase });
    assert.equal(verdict.kind, 'accepted', verdict.kind === 'refused' ? verdict.reason : '');
  });
});
