import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hostKey } from '../../../../src/crypto/host-key.ts';
import { signedOffer } from '../../../../src/payments/x402/wire/offer-receipt.ts';
import { compileOffers, type OfferSigner } from '../../../../src/payments/x402/wire/offers.ts';
import { pem } from '../../../config/sections/ap2.ts';
import { tokensUnder } from '../../settlement/tokens.ts';
import { termsFor } from '../signing.ts';

const BASE = 'https://shop.example';
const x402 = { ...termsFor(), maxTimeoutSeconds: 100 };
const REPORT = {
  id: 'report',
  name: 'Report',
  description: undefined,
  mimeType: 'application/json',
  backend: { timeoutMs: 10_000 },
  pricing: { type: 'fixed', amount: '0.01', currency: 'TUSD', units: 10_000n } as const,
};

/** The offer of one resource under a clock, and how often it was signed. */
function offerAt(clock: { nowMs: number }, sign?: OfferSigner['sign']) {
  const key = hostKey(pem(), BASE);
  const untils: number[] = [];
  const signer: OfferSigner = {
    now: () => clock.nowMs,
    sign: (requirements, url, validUntil) => {
      untils.push(validUntil);
      return sign === undefined ? signedOffer(key, requirements, url, validUntil) : sign(requirements, url, validUntil);
    },
  };
  const config = { merchant: { publicBaseUrl: BASE }, resources: [REPORT], x402 };
  const offer = compileOffers(config, tokensUnder(), undefined, signer).get('report') ?? assert.fail();
  const challenge = () => {
    const expiresAt = new Date(clock.nowMs + 100_000).toISOString();
    const { document } = offer.challenge.fresh({ requestId: 'r', expiresAt, token: offer.issueToken(undefined) });
    return (JSON.parse(document) as { extensions: Record<string, unknown> }).extensions['offer-receipt'];
  };
  return { untils, challenge };
}

describe('a signed offer', () => {
  it('is signed once for all challenges of half its time, and outlives each of them', () => {
    const clock = { nowMs: 1_000_000 };
    const { untils, challenge } = offerAt(clock);
    assert.equal(untils.length, 0, 'nothing is signed before it is asked for');
    const first = challenge();
    for (let second = 0; second < 50; second += 1) {
      assert.deepEqual(challenge(), first);
      assert.ok((untils.at(-1) ?? 0) * 1_000 >= clock.nowMs + 100_000, `at ${second}`);
      clock.nowMs += 1_000;
    }
    assert.notDeepEqual(challenge(), first);
    assert.deepEqual(untils, [1_150, 1_200]);
  });

  it('is left out where it cannot be signed', () => {
    const { challenge } = offerAt({ nowMs: 1_000_000 }, () => undefined);
    assert.equal(challenge(), undefined);
  });
});
