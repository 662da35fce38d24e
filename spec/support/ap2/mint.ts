/** Makes test mandates of all kinds, right ones and wrong ones. */

import { randomBytes } from 'node:crypto';
import {
  allowedMerchants,
  amountRange,
  type Constraint,
  lineItems,
  reference,
} from '../../../tools/mandate/maker/constraints.ts';
import { closedCheckout, closedPayment, openMandate, VCT } from '../../../tools/mandate/maker/contents.ts';
import { hopDraft, rootDraft } from '../../../tools/mandate/maker/drafts.ts';
import { chainOf, envelopeOf, hashOf, headerOf, signJwt } from '../../../tools/mandate/maker/tokens.ts';
import { forge, type Hand } from './hands.ts';
import { BANK, CREDENTIAL_VCT, createParties, type Parties, PROVIDER } from './keys.ts';
import { checkoutOf, minorUnits, NOW, profileWith, purchaseWith } from './purchase.ts';
import type { OpenMandates, Presentation, Wishes } from './wishes.ts';

/** A mint with keys of its own. */
export interface Mint {
  readonly parties: Parties;
  checkout(wishes?: Wishes): { readonly jwt: string; readonly jti: string };
  /** Open mandates alone, to be closed more than once. */
  open(wishes?: Wishes): OpenMandates;
  /** Closes open mandates for the purchase of the wishes. */
  close(open: OpenMandates, wishes?: Wishes): Presentation;
  /** Open and closed: an agent acts for its user. */
  autonomous(wishes?: Wishes): Presentation;
  /** The provider signed this very purchase. */
  direct(wishes?: Wishes): Presentation;
  /** The user signed this very purchase with the key of a bank's credential. */
  credential(wishes?: Wishes & { readonly credential?: Hand }): Presentation;
}

const HOUR = 3_600;
/** Seconds between a signature and its presentation. */
const AGE = 5;

export function createMint(parties: Parties = createParties()): Mint {
  const { agent, subAgent, user, bank } = parties;

  function settled(wishes: Wishes) {
    const { now = NOW, purchase = purchaseWith(), profile = profileWith(), payment = false, life = 24 * HOUR } = wishes;
    const issuer = wishes.issuer ?? { key: parties.provider, iss: PROVIDER };
    return { now, purchase, profile, payment, life, issuer, hands: wishes.hands ?? {} };
  }

  function checkout(wishes: Wishes = {}): { readonly jwt: string; readonly jti: string } {
    if (wishes.checkoutJwt !== undefined) return { jwt: wishes.checkoutJwt, jti: nonceIn(wishes.checkoutJwt) };
    const { now, purchase, profile } = settled(wishes);
    const { jti = randomBytes(16).toString('base64url'), change, signer = parties.checkout } = wishes.checkout ?? {};
    const kid = parties.checkout.publicJwk.kid;
    const token = checkoutOf(purchase, profile, { now: now - 20, jti, kid });
    const { header, claims } = change?.(token) ?? token;
    return { jwt: signJwt(header, claims, signer), jti };
  }

  function open(wishes: Wishes = {}): OpenMandates {
    const { now, purchase, profile, payment, life, issuer, hands } = settled(wishes);
    const times = { iat: now - HOUR, exp: now + life };
    const { resourceId: id, title } = purchase;
    const wants = (): readonly Constraint[] =>
      wishes.constraints ?? [
        lineItems([{ id: 'line_1', acceptable: [{ id, title }], quantity: 1 }]),
        allowedMerchants([profile.merchant]),
      ];
    const pays = (hash: string): readonly Constraint[] =>
      wishes.paymentConstraints?.(hash) ?? [amountRange(purchase.price.currency, 1_000_000), reference(hash)];
    const grant = (vct: string, constraints: () => readonly Constraint[], first: Hand = {}, second: Hand = {}) => {
      const content = openMandate(vct, constraints(), { ...times, holder: agent.publicJwk });
      const root = forge(
        content,
        (c) => rootDraft(c, { iss: issuer.iss, iat: now - HOUR }, issuer.key),
        issuer.key,
        first,
      );
      if (wishes.delegated !== true) return [root];
      const narrower = openMandate(vct, constraints(), { ...times, holder: subAgent.publicJwk });
      const terms = { previous: root, aud: 'sub-agent', nonce: randomBytes(16).toString('base64url'), iat: now - 60 };
      return [root, forge(narrower, (c) => hopDraft(c, terms, agent), agent, second)];
    };
    const granted = grant(VCT.openCheckout, wants, hands.open, hands.subAgent);
    if (!payment) return { checkout: granted, payment: [] };
    const hash = hashOf(granted[0] ?? '');
    const paid = grant(VCT.openPayment, () => pays(hash), hands.openPayment, hands.paymentSubAgent);
    return { checkout: granted, payment: paid };
  }

  function close(opened: OpenMandates, wishes: Wishes = {}): Presentation {
    const { now, profile, hands } = settled(wishes);
    const { jwt, jti } = checkout(wishes);
    const last = opened.checkout.length > 1 ? subAgent : agent;
    const hop = (segments: readonly string[]) => ({
      ...{ previous: segments.at(-1) ?? '', aud: profile.audience, nonce: jti, iat: now - AGE },
    });
    const closed = forge(closedCheckout(jwt), (c) => hopDraft(c, hop(opened.checkout), last), last, hands.closed);
    const segments = [...opened.checkout, closed];
    if (opened.payment.length === 0) return presented(wishes, { jwt, jti, opened, segments, payment: [] });
    const content = closedPayment(paymentTerms(wishes, jwt));
    const paid = forge(content, (c) => hopDraft(c, hop(opened.payment), last), last, hands.closedPayment);
    return presented(wishes, { jwt, jti, opened, segments, payment: [paid] });
  }

  function direct(wishes: Wishes = {}): Presentation {
    const { now, issuer, payment, hands } = settled(wishes);
    const { jwt, jti } = checkout(wishes);
    const terms = { iss: issuer.iss, iat: now - 10, exp: now + 290 };
    const root = (c: Parameters<typeof rootDraft>[0]) => rootDraft(c, terms, issuer.key);
    const closed = forge(closedCheckout(jwt), root, issuer.key, hands.closed);
    const pays = payment
      ? [forge(closedPayment(paymentTerms(wishes, jwt)), root, issuer.key, hands.closedPayment)]
      : [];
    return presented(wishes, { jwt, jti, opened: { checkout: [], payment: [] }, segments: [closed], payment: pays });
  }

  function credential(wishes: Wishes & { readonly credential?: Hand } = {}): Presentation {
    const { now, profile, hands } = settled(wishes);
    const { jwt, jti } = checkout(wishes);
    const { kty, crv, x, y } = user.publicJwk;
    const claims = { iss: BANK, vct: CREDENTIAL_VCT, iat: now - HOUR, exp: now + 24 * HOUR };
    const held = { ...claims, cnf: { jwk: { kty, crv, x, ...(y === undefined ? {} : { y }) } } };
    const header = { alg: bank.publicJwk.alg, typ: 'dc+sd-jwt', kid: bank.publicJwk.kid };
    const nothing = { mandate: {}, disclosures: [] };
    const root = forge(nothing, () => ({ header, claims: held, disclosures: [] }), bank, wishes.credential);
    const hop = { previous: root, aud: profile.audience, nonce: jti, iat: now - AGE };
    const closed = forge(closedCheckout(jwt), (c) => hopDraft(c, hop, user), user, hands.closed);
    return presented(wishes, {
      jwt,
      jti,
      opened: { checkout: [], payment: [] },
      segments: [root, closed],
      payment: [],
    });
  }

  return {
    parties,
    checkout,
    open,
    close,
    autonomous: (wishes) => close(open(wishes), wishes),
    direct,
    credential,
  };
}

interface Made {
  readonly jwt: string;
  readonly jti: string;
  readonly opened: OpenMandates;
  readonly segments: readonly string[];
  /** The closed payment mandate, if there is one. */
  readonly payment: readonly string[];
}

function presented(wishes: Wishes, { jwt, jti, opened, segments, payment }: Made): Presentation {
  const paymentSegments = payment.length === 0 ? [] : [...opened.payment, ...payment];
  const payload = chainOf(segments);
  const paymentMandate = paymentSegments.length === 0 ? undefined : chainOf(paymentSegments);
  const envelope = envelopeOf(payload, paymentMandate);
  const header = headerOf(wishes.envelope?.(envelope) ?? envelope);
  return { header, payload, paymentMandate, checkoutJwt: jwt, jti, open: opened, segments, paymentSegments };
}

function paymentTerms({ purchase = purchaseWith(), profile = profileWith() }: Wishes, checkoutJwt: string) {
  const { price, payment } = purchase;
  if (payment?.payer === undefined) throw new Error('a payment mandate needs a purchase whose payer is known');
  const amount = minorUnits(price.amount, profile.exponents.get(price.currency) ?? 0);
  const { network, payer } = payment;
  return { checkoutJwt, payee: profile.merchant, amount, currency: price.currency, network, payer };
}

function nonceIn(checkoutJwt: string): string {
  const claims: { readonly jti?: unknown } = JSON.parse(
    Buffer.from(checkoutJwt.split('.')[1] ?? '', 'base64url').toString('utf8'),
  );
  return String(claims.jti);
}
