/**
 * What the specs of mandates share: rows of verdicts and refused chains, keys of issuers, and
 * mandates with every member that AP2 has.
 */

import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../src/json/json.ts';
import { createChainCache, createChainVerifier } from '../../../src/mandates/ap2/chain.ts';
import type { TrustedIssuers } from '../../../src/mandates/ap2/issuers.ts';
import type { Ap2Profile } from '../../../src/mandates/ap2/purchase.ts';
import { type MandateFamily, type MandateVerdict, type Reason, Refused } from '../../../src/mandates/ap2/reasons.ts';
import { amountRange, budget, plain, recurrence } from '../../../tools/mandate/maker/constraints.ts';
import { changed, type Hand } from '../../support/ap2/hands.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { NOW, profileWith, purchaseWith } from '../../support/ap2/purchase.ts';
import { trustIn } from '../../support/ap2/trust.ts';
import { type Against, verifierFor } from '../../support/ap2/verifier.ts';
import { type Wishes, withReference } from '../../support/ap2/wishes.ts';

/** Reads the reason out of what a check throws. */

/** The reason that something is refused for, or `none`. Anything else that is thrown is a bug. */
export function refusalOf(check: () => unknown): Reason | 'none' {
  try {
    check();
    return 'none';
  } catch (error) {
    return reasonIn(error);
  }
}

/** The same for an asynchronous check. */
export async function lateRefusalOf(check: () => Promise<unknown>): Promise<Reason | 'none'> {
  try {
    await check();
    return 'none';
  } catch (error) {
    return reasonIn(error);
  }
}

function reasonIn(error: unknown): Reason {
  assert.ok(error instanceof Refused, String(error));
  return error.reason;
}

/** What specs of the whole verifier share: rows of presentations with their verdicts. */

/** A presentation, its verdict, and the purchase or time it is checked with where not the usual. */
export type Row = readonly [what: string, header: () => string, result: Reason | 'accepted', against?: Against];

type Verdict = ReturnType<ReturnType<typeof verifierFor>>;

/** One test a row: through the whole verifier, so that it also shows which check comes first. */
export function rows(verify: ReturnType<typeof verifierFor>, family: MandateFamily, table: readonly Row[]): void {
  for (const [what, header, result, against] of table)
    it(`${result}: ${what}`, async () =>
      assert.deepEqual(await resultOf(verify(header(), against)), result === 'accepted' ? [result] : [result, family]));
}

/** `accepted`, or the reason and the mandate that it is about. */
export async function resultOf(verdict: Verdict): Promise<readonly (string | undefined)[]> {
  const given = await verdict;
  return given.kind === 'accepted' ? ['accepted'] : [given.reason, given.mandate];
}

/** A checkout with other claims, signed by the merchant all the same. */
export function withCheckoutClaims(change: (claims: JsonObject) => JsonObject): NonNullable<Wishes['checkout']> {
  return { change: ({ header, claims }) => ({ header, claims: change(claims) }) };
}

/** What the specs of chains share: one mint, a verifier of its chains, and rows of refused ones. */

/** One mint and what trusts it. */
export const mint = createMint();
export const trust = trustIn(mint.parties);

/** What a presentation is checked with; left out: right. */
interface Circumstances {
  readonly family?: MandateFamily;
  readonly now?: number;
  readonly profile?: Ap2Profile;
  readonly trust?: TrustedIssuers;
}

export function verifyChain(presentation: string, circumstances: Circumstances = {}) {
  const { family = 'checkout', now = NOW, profile = profileWith() } = circumstances;
  const parts = { profile, trust: circumstances.trust ?? trust, cache: createChainCache() };
  return createChainVerifier(parts)(presentation, family, now);
}

/** The reason that a presentation is refused for, or `none`. */
export function refusal(presentation: string, circumstances?: Circumstances): Promise<Reason | 'none'> {
  return lateRefusalOf(() => verifyChain(presentation, circumstances));
}

/** What is wrong with a chain, why it is refused, and how it is made. */
export type ChainRow = readonly [what: string, reason: Reason, wishes: Wishes, circumstances?: Circumstances];

/** One test a row: an autonomous checkout mandate that is right but for the wishes. */
export function refuses(title: string, table: readonly ChainRow[]): void {
  describe(title, () => {
    for (const [what, reason, wishes, circumstances] of table)
      it(`${what}: ${reason}`, async () =>
        assert.equal(await refusal(mint.autonomous(wishes).payload, circumstances), reason));
  });
}

/** The open mandate, the closed one, or the one between them, forged. */
export const open = (hand: Hand): Wishes => ({ hands: { open: hand } });
export const closed = (hand: Hand): Wishes => ({ hands: { closed: hand } });
export const handedOn = (hand: Hand): Wishes => ({ delegated: true, hands: { subAgent: hand } });

/** A hand that replaces the claims and drops all disclosures. */
export function withoutDisclosures(claims: (claims: JsonObject) => JsonObject): Hand {
  return { draft: (draft) => ({ ...draft, claims: claims(draft.claims), disclosures: [] }) };
}

const verify = verifierFor(mint);

const { network = '', payer = '' } = purchaseWith().payment ?? {};
const SHOP = { id: 'test-shop', name: 'Test Shop', website: 'https://www.shop.example' };
const ACCOUNT = { id: `${network}:${payer}`, type: 'x402', description: 'wallet' };
const PISP = { legal_name: 'Pay Ltd', brand_name: 'Pay', domain_name: 'pay.example' };
const ITEM = { id: 'market_report', title: 'Market report' };
const CLOSED = { payee: SHOP, payment_instrument: ACCOUNT, pisp: PISP, execution_date: '2026-11-20', risk_data: {} };

/** Open and closed mandates with every member there is, none withheld, with these hands on them. */
function presented(hands: Wishes['hands'] = {}): string {
  const constraints = [
    plain({ type: 'checkout.line_items', items: [{ id: 'line_1', acceptable_items: [ITEM], quantity: 1 }] }),
    plain({ type: 'checkout.allowed_merchants', allowed: [SHOP] }),
  ];
  const paymentConstraints = withReference(
    amountRange('USDC', 10_000, 1),
    plain({ type: 'payment.allowed_payees', allowed: [SHOP] }),
    plain({ type: 'payment.allowed_payment_instruments', allowed: [ACCOUNT] }),
    plain({ type: 'payment.allowed_pisps', allowed: [PISP] }),
    plain({ type: 'payment.execution_date', not_before: '2026-11-20', not_after: '2026-11-20' }),
    budget('USDC', 1),
    recurrence('DAILY', 3),
  );
  const { closedPayment: last } = hands;
  const closedPayment: Hand = {
    content({ mandate, disclosures }) {
      const whole = { mandate: changed(mandate, CLOSED), disclosures };
      return last?.content?.(whole) ?? whole;
    },
  };
  return mint.autonomous({ payment: true, constraints, paymentConstraints, hands: { ...hands, closedPayment } }).header;
}

/** The verdict on mandates with every member, changed by these hands. */
export function verdictOn(hands: Wishes['hands']): Promise<MandateVerdict> {
  return verify(presented(hands));
}

/** Keys of issuers as specs of the trust publish them. */

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** A fresh public key as an issuer publishes it. */
interface IssuerKey {
  readonly jwk: JsonObject;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export function issuerKey(kid: string, namedCurve = 'P-256'): IssuerKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve });
  return { jwk: { ...(publicKey.export({ format: 'jwk' }) as JsonObject), kid }, publicKey, privateKey };
}

/** A key with its private half, which no issuer may publish. */
export function leakedKey(kid: string): JsonObject {
  const { jwk, privateKey } = issuerKey(kid);
  return { ...(privateKey.export({ format: 'jwk' }) as JsonObject), ...jwk };
}

/** Writes a key of P-256 or secp256k1, or any bytes, as a Multikey text. */
export function multikeyOf(key: KeyObject | Buffer): string {
  let number = BigInt(`0x${(Buffer.isBuffer(key) ? key : coded(key)).toString('hex')}`);
  let text = '';
  for (; number > 0n; number /= 58n) text = (BASE58[Number(number % 58n)] ?? '') + text;
  return `z${text}`;
}

function coded(key: KeyObject): Buffer {
  const { crv, x = '', y = '' } = key.export({ format: 'jwk' });
  const odd = (Buffer.from(y, 'base64url').at(-1) ?? 0) % 2;
  const code = crv === 'P-256' ? [0x80, 0x24] : [0xe7, 0x01];
  return Buffer.concat([Buffer.from([...code, 2 + odd]), Buffer.from(x, 'base64url')]);
}
