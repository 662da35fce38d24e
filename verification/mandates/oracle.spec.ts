import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { compactVerify, createLocalJWKSet, importJWK, jwtVerify } from 'jose';
import { refusalOf } from '../../spec/mandates/ap2/cases.ts';
import { createParties, type Parties, publishedJwk } from '../../spec/support/ap2/keys.ts';
import { createMint, type Mint } from '../../spec/support/ap2/mint.ts';
import { type Jwk, type Read, readPresentation } from '../../spec/support/ap2/oracle.ts';
import { AUDIENCE, NOW, profileWith, purchaseWith } from '../../spec/support/ap2/purchase.ts';
import { verifierFor } from '../../spec/support/ap2/verifier.ts';
import type { Presentation } from '../../spec/support/ap2/wishes.ts';
import { keySet } from '../../src/crypto/signing-key.ts';
import { createReceiptSigner } from '../../src/mandates/ap2/challenge.ts';
import {
  checkoutKeysOf,
  createCheckoutCheck,
  createCheckoutKeys,
  createCheckoutMint,
  createIssuedCheckouts,
} from '../../src/mandates/ap2/checkout.ts';
import { type Chance, chanceOf } from '../chaos/sim/chance.ts';

/** Without ES256K, which `jose` does not have. */
const ALGORITHMS = ['ES256', 'ES384', 'EdDSA'] as const;
type OracleAlgorithm = (typeof ALGORITHMS)[number];

/** A mandate with one algorithm for all its signers. */
interface SignedChain {
  readonly kind: string;
  readonly alg: OracleAlgorithm;
  readonly made: Presentation;
  /** Of the checkout mandate, root first, then of the payment mandate, each with its right key. */
  readonly tokens: readonly Read[];
  /** The verifier that trusts its issuers. */
  readonly verify: ReturnType<typeof verifierFor>;
}

/** One of every kind, with fresh keys. */
function chainsSignedWith(alg: OracleAlgorithm): readonly SignedChain[] {
  const mint = createMint(createParties(alg));
  const verify = verifierFor(mint, { profile: profileWith({ algorithms: new Set([alg]) }) });
  const { provider, bank } = mint.parties;
  const chain = (kind: string, made: Presentation, root: Parties['provider'] = provider): SignedChain => {
    const presented = [made.payload, made.paymentMandate].filter((one) => one !== undefined);
    const tokens = presented.flatMap((presentation) => readPresentation(presentation, pointOf(root)));
    return { kind, alg, made, tokens, verify };
  };
  return [
    chain('autonomous', mint.autonomous()),
    chain('autonomous and paying', mint.autonomous({ payment: true })),
    chain('through a sub-agent, and paying', mint.autonomous({ delegated: true, payment: true })),
    chain('direct and paying', mint.direct({ payment: true })),
    chain('under a credential', mint.credential(), bank),
  ];
}

function pointOf({ publicJwk: { kty, crv, x, y } }: Parties['provider']): Read['jwk'] {
  return { kty, crv, x, ...(y === undefined ? {} : { y }) };
}

/** The verdict of this verifier on a token in place of the right one: a reason, or `none`. */
type Judge = (changed: string) => Promise<string>;

/** A right token, its key, and this verifier's judge of it. */
interface Alterable {
  readonly what: string;
  readonly jwt: string;
  readonly jwk: Jwk;
  readonly alg: string;
  readonly judge: Judge;
}

interface Trials {
  /** Changed tokens that `jose` refused and that were accepted here. There must be none. */
  readonly disagreed: readonly string[];
  readonly refusedThere: number;
  /** The number of refusals here by reason. */
  readonly reasons: ReadonlyMap<string, number>;
}

/** The tokens of a mandate; each is judged at its position in the whole presentation. */
function tokensToAlter({ kind, alg, made, tokens, verify }: SignedChain): readonly Alterable[] {
  const envelope = Buffer.from(made.header, 'base64url').toString();
  return tokens.map(({ jwt, jwk }, at) => ({
    what: `${alg}, ${kind}, token ${at}`,
    ...{ jwt, jwk, alg },
    async judge(changed) {
      // As JSON text: the changed character may be one that JSON escapes.
      const text = envelope.replace(jwt, () => JSON.stringify(changed).slice(1, -1));
      const verdict = await verify(Buffer.from(text).toString('base64url'));
      return verdict.kind === 'refused' ? verdict.reason : 'none';
    },
  }));
}

/** Checkouts of the merchant, each with a mandate for it. */
function checkoutsToAlter(mint: Mint): readonly Alterable[] {
  const { checkout } = mint.parties;
  const signed = createCheckoutKeys([publishedJwk(checkout)]);
  const check = createCheckoutCheck({ profile: profileWith(), signed, minted: createIssuedCheckouts() });
  const judge: Judge = async (jwt) => {
    const digest = createHash('sha256').update(jwt).digest('base64url');
    return refusalOf(() => check({ checkout_hash: digest, checkout_jwt: jwt }, NOW));
  };
  return Array.from({ length: 5 }, (_, at) => {
    const { jwt } = mint.checkout();
    return { what: `checkout ${at}`, jwt, jwk: checkout.publicJwk, alg: 'ES256', judge };
  });
}

/** Changes one character, `count` times. @throws Error when a right token is refused */
async function tried(
  tokens: readonly Alterable[],
  { seed, count }: { readonly seed: number; readonly count: number },
): Promise<Trials> {
  const chance = chanceOf(seed);
  const disagreed: string[] = [];
  const reasons = new Map<string, number>();
  let refusedThere = 0;
  for (const token of tokens) {
    if ((await isRefused(token, token.jwt)) || (await token.judge(token.jwt)) !== 'none')
      throw new Error(`a right token is refused: ${token.what}`);
  }
  for (let at = 0; at < count; at += 1) {
    const token = chance.pick(tokens);
    const changed = altered(token.jwt, chance);
    const [there, here] = await Promise.all([isRefused(token, changed), token.judge(changed)]);
    reasons.set(here, (reasons.get(here) ?? 0) + 1);
    if (there) refusedThere += 1;
    if (there && here === 'none') disagreed.push(`change ${at} of seed ${seed}, ${token.what}: ${changed}`);
  }
  return { disagreed, refusedThere, reasons };
}

async function isRefused({ jwk, alg }: Alterable, jwt: string): Promise<boolean> {
  const key = await importJWK({ ...jwk }, alg);
  return compactVerify(jwt, key, { algorithms: [alg] }).then(
    () => false,
    () => true,
  );
}

/** Mostly letters of base64url, so that the change passes the checks of spelling. */
const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'];
const OTHERS = [...'.=~+/ "\\\0é'];

function altered(jwt: string, chance: Chance): string {
  const parts = jwt.split('.');
  // Each part equally often, independent of its length.
  const part = chance.below(parts.length);
  const text = parts[part] ?? '';
  const at = chance.below(text.length);
  const from = (chance.happens(0.9) ? LETTERS : OTHERS).filter((letter) => letter !== text[at]);
  return parts.with(part, text.slice(0, at) + chance.pick(from) + text.slice(at + 1)).join('.');
}

// `jose` judges the signatures here and `node:crypto` the digests, independently of this project.

/** Tokens with one wrong character that both sides judge. */
const CHANGES = 300;
/** Changes that certainly expose a verifier without signature checks. */
const FEW = 60;
const SEED = 17;

const sha256 = (text: string): string => createHash('sha256').update(text, 'ascii').digest('base64url');
const CHAINS = ALGORITHMS.map((alg) => ({ alg, chains: chainsSignedWith(alg) }));

describe('another implementation accepts the signatures of the mandates', () => {
  for (const { alg, chains } of CHAINS)
    for (const { kind, tokens, made, verify } of chains)
      it(`${alg}: ${kind}, each segment with the key that the segment before names`, async () => {
        assert.equal(tokens.length, made.segments.length + made.paymentSegments.length);
        for (const { jwt, jwk } of tokens) {
          const key = await importJWK({ ...jwk }, alg);
          const { protectedHeader } = await compactVerify(jwt, key, { algorithms: [alg] });
          assert.equal(protectedHeader.alg, alg);
        }
        const verdict = await verify(made.header);
        assert.equal(verdict.kind, 'accepted', verdict.kind === 'refused' ? verdict.reason : '');
      });

  it('and not with another key', async () => {
    for (const { alg, chains } of CHAINS) {
      const stranger = await importJWK({ ...createParties(alg).stranger.publicJwk }, alg);
      for (const { tokens } of chains)
        for (const { jwt } of tokens)
          await assert.rejects(compactVerify(jwt, stranger), { code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' });
    }
  });
});

describe('the digests of the mandates, recomputed from the texts', () => {
  const [chains = []] = CHAINS.map((one) => one.chains);
  const named = (kind: string): SignedChain => chains.find((one) => one.kind === kind) ?? assert.fail(kind);

  it('every segment refers to the segment before it, and every token has the one mandate that it discloses', () => {
    for (const { kind, made } of chains)
      for (const segments of [made.segments, made.paymentSegments])
        for (const [at, segment] of segments.entries()) {
          const [jwt = '', ...disclosures] = segment.slice(0, -1).split('~');
          const claims = payloadOf(jwt);
          if (at > 0) assert.equal(claims['sd_hash'], sha256(segments[at - 1] ?? ''), `${kind}, segment ${at}`);
          const delegated = (claims['delegate_payload'] ?? []) as readonly { readonly '...': string }[];
          const digests = disclosures.map(sha256);
          for (const element of delegated) assert.ok(digests.includes(element['...']), `${kind}, segment ${at}`);
        }
  });

  it('the closed ones refer to the checkout, and the open payment mandate to the open checkout mandate', () => {
    const { made, tokens } = named('autonomous and paying');
    const [, closed, limits, paid] = tokens.map(({ mandate }) => mandate ?? {});
    const checkout = sha256(made.checkoutJwt);
    assert.deepEqual([closed?.['checkout_hash'], paid?.['transaction_id']], [checkout, checkout]);
    const constraints = (limits?.['constraints'] ?? []) as readonly Readonly<Record<string, unknown>>[];
    const reference = constraints.find(({ type }) => type === 'payment.reference');
    assert.equal(reference?.['conditional_transaction_id'], sha256(made.segments[0] ?? ''));
  });

  it('identify an accepted mandate', async () => {
    const { made, verify } = named('autonomous and paying');
    const verdict = await verify(made.header);
    assert.ok(verdict.kind === 'accepted');
    const leaf = made.segments.at(-1) ?? '';
    const jwts = [...made.segments, ...made.paymentSegments].map((segment) => segment.split('~')[0] ?? '');
    assert.deepEqual([verdict.reference, verdict.referenceSdHash], [sha256(jwts[1] ?? ''), sha256(leaf)]);
    const [open, closed, limits, paid] = jwts.map((jwt) => sha256(jwt.slice(0, jwt.lastIndexOf('.'))));
    assert.deepEqual(verdict.claim.once, [`m:${closed}`, `m:${paid}`, `j:${made.jti}`]);
    assert.deepEqual(
      verdict.claim.open.map(({ id }) => id),
      [open, limits],
    );
  });
});

describe('another implementation accepts signatures of the gateway with its published keys', () => {
  const mint = createMint();
  const { checkout, stranger } = mint.parties;
  const kid = checkout.publicJwk.kid;
  const { own, trusted } = checkoutKeysOf({ signingKey: checkout.pem, kid, alsoTrust: [publishedJwk(stranger)] });
  const published = createLocalJWKSet(JSON.parse(JSON.stringify(keySet(trusted))));
  const others = createLocalJWKSet(JSON.parse(JSON.stringify(keySet(trusted.slice(1)))));
  const claimed = { issuer: AUDIENCE, algorithms: ['ES256'], currentDate: new Date(NOW * 1_000) };

  it('checkouts', async () => {
    const issue = createCheckoutMint({ profile: profileWith(), key: own, minted: createIssuedCheckouts() });
    const { jwt, jti, hash } = issue(purchaseWith(), NOW * 1_000);
    const expected = { ...claimed, audience: AUDIENCE, typ: 'checkout+jwt' };
    const { payload, protectedHeader } = await jwtVerify(jwt, published, expected);
    assert.deepEqual([payload.jti, protectedHeader.kid, hash], [jti, kid, sha256(jwt)]);
    const late = { ...expected, currentDate: new Date((NOW + 300) * 1_000) };
    await assert.rejects(jwtVerify(jwt, published, late), { code: 'ERR_JWT_EXPIRED' });
    await assert.rejects(jwtVerify(jwt, others, expected), { code: 'ERR_JWKS_NO_MATCHING_KEY' });
  });

  it('receipts of accepted and of refused mandates', async () => {
    const signer = createReceiptSigner({ issuer: AUDIENCE, key: own });
    const about = { reference: 'r'.repeat(43), referenceSdHash: 's'.repeat(43) };
    const expected = { ...claimed, typ: 'ap2-receipt+jwt' };
    const sold = await jwtVerify(signer.accepted(about, { id: 'req_1' }, NOW * 1_000), published, expected);
    assert.deepEqual([sold.payload['status'], sold.payload['order_id']], ['Success', 'req_1']);
    const refused = signer.rejected(about, 'replayed', NOW * 1_000);
    const { payload } = await jwtVerify(refused, published, expected);
    assert.deepEqual([payload['status'], payload['error_description']], ['Error', 'replayed']);
    await assert.rejects(jwtVerify(refused, others, expected), { code: 'ERR_JWKS_NO_MATCHING_KEY' });
  });
});

describe('a token with one changed character', () => {
  const tokens = [...CHAINS.flatMap(({ chains }) => chains.flatMap(tokensToAlter)), ...checkoutsToAlter(createMint())];

  it(`is refused here wherever another implementation refuses its signature, ${CHANGES} times`, async () => {
    const { disagreed, refusedThere, reasons } = await tried(tokens, { seed: SEED, count: CHANGES });
    assert.deepEqual(disagreed, []);
    assert.ok(refusedThere >= CHANGES * 0.9, `only ${refusedThere} were refused there`);
    for (const reason of ['invalid_signature', 'checkout_signature_invalid', 'mandate_malformed'])
      assert.ok((reasons.get(reason) ?? 0) > 0, `never as ${reason}: ${[...reasons.keys()].join(', ')}`);
  });

  it('is accepted by a verifier without signature checks, so the comparison detects one', async () => {
    // Accepts any signature of the right head and payload.
    const careless = (right: string, judge: Judge): Judge => {
      const signed = right.slice(0, right.lastIndexOf('.') + 1);
      return (changed) => judge(changed.startsWith(signed) ? right : changed);
    };
    const carelessly = tokens.map((token) => ({ ...token, judge: careless(token.jwt, token.judge) }));
    const { disagreed } = await tried(carelessly, { seed: SEED, count: FEW });
    assert.ok(disagreed.length > 0);
  });
});

function payloadOf(jwt: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
}
