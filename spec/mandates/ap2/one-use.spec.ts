import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Frequency } from '../../../src/mandates/ap2/payment-mandate.ts';
import { finishUses, reserveUses } from '../../../src/mandates/register.ts';
import { amountRange, budget, lineItems, recurrence, reference } from '../../../tools/mandate/maker/constraints.ts';
import { closedCheckout, openMandate, VCT } from '../../../tools/mandate/maker/contents.ts';
import { hopDraft } from '../../../tools/mandate/maker/drafts.ts';
import {
  chainOf,
  discloseElement,
  envelopeOf,
  headerOf,
  placeholder,
  sdJwt,
  signJwt,
} from '../../../tools/mandate/maker/tokens.ts';
import { forge } from '../../support/ap2/hands.ts';
import { PROVIDER } from '../../support/ap2/keys.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { hashed } from '../../support/ap2/oracle.ts';
import { NOW } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import { withReference } from '../../support/ap2/wishes.ts';
import { mapRows } from '../claims.ts';

const mint = createMint();
const { provider, agent, subAgent, kidOnly } = mint.parties;
const verify = verifierFor(mint);
const WANTED = lineItems([
  {
    id: 'line_1',
    acceptable: ['market_report', 'other_report'].map((id) => ({ id, title: 'Report' })),
    quantity: 1,
  },
]);

/** The results of headers that are presented one after the other, each used up where it can be. */
async function uses(...presented: readonly (string | readonly [header: string, now: number])[]): Promise<string[]> {
  const rows = mapRows();
  const results: string[] = [];
  for (const one of presented) {
    const [header, now] = typeof one === 'string' ? [one, NOW] : one;
    const verdict = await verify(header, { now });
    const refusal = verdict.kind === 'refused' ? verdict.reason : reserveUses(rows, verdict.claim, now * 1_000);
    if (refusal === undefined && verdict.kind === 'accepted') finishUses(rows, verdict.claim, 'commit', now * 1_000);
    results.push(refusal ?? 'used');
  }
  return results;
}

/** The order of P-256 (FIPS 186-4, D.1.2.3): of a signature `(r, s)` also `(r, n - s)` is one. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

function malleated(segment: string): string {
  const [jwt = '', ...texts] = segment.slice(0, -1).split('~');
  const [head = '', payload = '', signature = ''] = jwt.split('.');
  const bytes = Buffer.from(signature, 'base64url');
  const other = ORDER - BigInt(`0x${bytes.toString('hex', 32)}`);
  const s = Buffer.from(other.toString(16).padStart(64, '0'), 'hex');
  return sdJwt(`${head}.${payload}.${Buffer.concat([bytes.subarray(0, 32), s]).toString('base64url')}`, texts);
}

const closedUnder = (checkout: readonly string[]): string => mint.close({ checkout, payment: [] }).header;

describe('an open mandate is used once', () => {
  it('whichever signature of its issuer it comes with', async () => {
    const [root = ''] = mint.open().checkout;
    assert.deepEqual(await uses(closedUnder([root]), closedUnder([malleated(root)])), ['used', 'open_mandate_spent']);
  });

  it('whatever of it is shown', async () => {
    const [root = ''] = mint.open({ constraints: [WANTED] }).checkout;
    const [jwt = '', wanted = '', , ...others] = root.slice(0, -1).split('~');
    const less = sdJwt(jwt, [wanted, ...others]);
    assert.deepEqual(await uses(closedUnder([root]), closedUnder([less])), ['used', 'open_mandate_spent']);
  });

  it('through however many sub-agents', async () => {
    const [root = ''] = mint.open().checkout;
    const handedOn = (): string => {
      const content = openMandate(VCT.openCheckout, [WANTED], {
        ...{ iat: NOW - 60, exp: NOW + 60 },
        holder: subAgent.publicJwk,
      });
      const terms = { previous: root, aud: 'sub-agent', nonce: 'any', iat: NOW - 60 };
      return closedUnder([root, forge(content, (c) => hopDraft(c, terms, agent), agent)]);
    };
    assert.deepEqual(await uses(handedOn(), handedOn()), ['used', 'open_mandate_spent']);
  });

  it('unless a payment mandate beside it may be used again, which any trusted issuer can sign', async () => {
    const opened = mint.open();
    const paymentConstraints = () => [
      reference(hashed(opened.checkout[0] ?? '')),
      ...[amountRange('USDC', 10_000), budget('USDC', 0.02), recurrence('ON_DEMAND')],
    ];
    const again = (): string => {
      const { checkoutJwt, payload } = mint.close(opened);
      const issuer = { key: kidOnly, iss: undefined };
      const { paymentMandate } = mint.autonomous({ payment: true, checkoutJwt, issuer, paymentConstraints });
      return headerOf(envelopeOf(payload, paymentMandate));
    };
    // A new payment mandate each time, and all the same the share of the checkout mandate is one.
    assert.deepEqual(await uses(again(), again(), again()), ['used', 'used', 'budget_exceeded']);
  });
});

describe('a checkout and a closed mandate are used once', () => {
  it('whichever signature of its agent it comes with', async () => {
    const { segments } = mint.autonomous();
    const [open = '', closed = ''] = segments;
    const headers = [closed, malleated(closed)].map((last) => headerOf(envelopeOf(chainOf([open, last]))));
    assert.deepEqual(await uses(...headers), ['used', 'replayed']);
    const [right, other] = await Promise.all(headers.map((header) => verify(header)));
    assert.ok(right?.kind === 'accepted' && other?.kind === 'accepted');
    assert.deepEqual(other.claim, right.claim);
    assert.notEqual(other.reference, right.reference);
  });

  it('when the merchant signs two checkouts of one id', async () => {
    const wishes = { checkout: { jti: 'one id for both of them' } };
    assert.deepEqual(await uses(mint.autonomous(wishes).header, mint.autonomous(wishes).header), ['used', 'replayed']);
  });

  it('when one token closes two purchases', async () => {
    const contents = [mint.checkout(), mint.checkout()].map(({ jwt }) => closedCheckout(jwt));
    const closed = contents.map((content) => ({ content, whole: discloseElement(content.mandate) }));
    const delegate_payload = closed.map(({ whole }) => placeholder(whole));
    const header = { alg: 'ES256', typ: 'dc+sd-jwt', kid: provider.publicJwk.kid };
    const jwt = signJwt(header, { iss: PROVIDER, iat: NOW - 5, exp: NOW + 60, delegate_payload }, provider);
    const shown = closed.map(({ content, whole }) => [...content.disclosures, whole].map(({ text }) => text));
    const show = (texts: readonly string[]): string => headerOf(envelopeOf(chainOf([sdJwt(jwt, texts)])));
    assert.deepEqual(await uses(...shown.map(show), show(shown.flat())), ['used', 'replayed', 'claims_invalid']);
  });
});

describe('a mandate that may be used again', () => {
  /** The two uses of a mandate of that frequency, at these times of UTC. */
  const second = async (frequency: Frequency, ...at: readonly [string, string]): Promise<string | undefined> => {
    const [first, next] = at.map((text) => Date.parse(`${text}Z`) / 1_000) as [number, number];
    const limits = [amountRange('USDC', 10_000), budget('USDC', 1), recurrence(frequency)];
    const paymentConstraints = withReference(...limits);
    const opened = mint.open({ payment: true, now: first, life: next - first + 60, paymentConstraints });
    const presented = [first, next].map((now) => [mint.close(opened, { now, payment: true }).header, now] as const);
    const [before, after] = await uses(...presented);
    assert.equal(before, 'used');
    return after;
  };

  const CASES: readonly (readonly [Frequency, string, string, string])[] = [
    ['ON_DEMAND', '2026-11-20T12:00:00', '2026-11-20T12:00:00', 'used'],
    ['WEEKLY', '2026-11-22T23:59:59', '2026-11-23T00:00:00', 'used'],
    ['WEEKLY', '2026-12-28T00:00:00', '2027-01-03T23:59:59', 'recurrence_too_soon'],
  ];
  for (const [frequency, first, next, result] of CASES)
    it(`${frequency}, on ${first} and ${next}: ${result}`, async () =>
      assert.equal(await second(frequency, first, next), result));
});
