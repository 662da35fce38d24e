import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type ChainCache,
  createChainCache,
  createChainVerifier,
  MAX_CACHED_SEGMENTS,
  type ProvenSegment,
  rootKey,
  SEGMENT_TTL_SECONDS,
} from '../../../src/mandates/ap2/chain.ts';
import type { FoundKey, KeyChoice, TrustedIssuers } from '../../../src/mandates/ap2/issuers.ts';
import type { Reason } from '../../../src/mandates/ap2/reasons.ts';
import { lineItems } from '../../../tools/mandate/maker/constraints.ts';
import { closedCheckout, openMandate, VCT } from '../../../tools/mandate/maker/contents.ts';
import { hopDraft, rootDraft } from '../../../tools/mandate/maker/drafts.ts';
import { chainOf, type Draft, hashOf } from '../../../tools/mandate/maker/tokens.ts';
import { type Changes, changed, forge, withClaims, withHeader } from '../../support/ap2/hands.ts';
import { BANK, createKey, KID_ONLY, PROVIDER } from '../../support/ap2/keys.ts';
import { AUDIENCE, NOW, profileWith, purchaseWith } from '../../support/ap2/purchase.ts';
import { lateRefusalOf, mint, refusal, trust, verifyChain } from './cases.ts';

const HOUR = 3_600;
const signingInput = (segment: string): string => segment.split('.').slice(0, 2).join('.');

describe('a chain is accepted', () => {
  it('open and closed: the agent acts for its user', async () => {
    const { payload, segments, jti, checkoutJwt } = mint.autonomous();
    const [open = '', closed = ''] = segments;
    const chain = await verifyChain(payload);
    assert.equal(chain.mode, 'autonomous');
    assert.equal(chain.issuer, PROVIDER);
    assert.equal(chain.nonce, jti);
    assert.deepEqual(
      chain.open.map(({ id, sdHash, mandate }) => [id, sdHash, mandate?.['vct']]),
      [[hashOf(signingInput(open)), hashOf(open), 'mandate.checkout.open.1']],
    );
    assert.equal(chain.closed.id, hashOf(signingInput(closed)));
    assert.equal(chain.closed.sdHash, hashOf(closed));
    assert.deepEqual(chain.closed.mandate, {
      vct: 'mandate.checkout.1',
      checkout_hash: hashOf(checkoutJwt),
      checkout_jwt: checkoutJwt,
    });
    assert.deepEqual(chain.reference, {
      reference: hashOf(closed.slice(0, closed.indexOf('~'))),
      referenceSdHash: hashOf(closed),
    });
    // The hop was signed five seconds ago and may be 300 seconds old: sooner than the mandate's own
    // end.
    assert.equal(chain.ends, NOW - 5 + 300);
  });

  it('with its constraints as they were before they were taken apart', async () => {
    const { open } = await verifyChain(mint.autonomous().payload);
    assert.deepEqual(open[0]?.mandate?.['constraints'], [
      {
        type: 'checkout.line_items',
        items: [{ id: 'line_1', acceptable_items: [{ id: 'market_report', title: 'Market report' }], quantity: 1 }],
      },
      {
        type: 'checkout.allowed_merchants',
        allowed: [{ id: 'test-shop', name: 'Test Shop', website: 'https://www.shop.example' }],
      },
    ]);
  });

  it('through a sub-agent', async () => {
    const { payload, segments } = mint.autonomous({ delegated: true });
    const chain = await verifyChain(payload);
    assert.equal(segments.length, 3);
    assert.deepEqual([chain.mode, chain.open.length], ['autonomous', 2]);
    assert.equal(chain.open[1]?.id, hashOf(signingInput(segments[1] ?? '')));
  });

  it('of the payment family', async () => {
    const { paymentMandate = '' } = mint.autonomous({ payment: true, purchase: purchaseWith() });
    const chain = await verifyChain(paymentMandate, { family: 'payment' });
    assert.equal(chain.closed.mandate?.['vct'], 'mandate.payment.1');
  });

  it('signed by the provider for this very purchase: no hop, no nonce, and its own end', async () => {
    const chain = await verifyChain(mint.direct().payload);
    assert.deepEqual([chain.mode, chain.nonce, chain.open], ['direct', undefined, []]);
    assert.equal(chain.ends, NOW + 290);
  });

  it('signed by the user of a credential: direct, for no open mandate precedes', async () => {
    const { payload, jti } = mint.credential();
    const chain = await verifyChain(payload);
    assert.deepEqual([chain.mode, chain.issuer, chain.nonce, chain.open], ['direct', BANK, jti, []]);
    assert.equal(chain.role.kind, 'credentials');
  });

  it('without iss, from a provider whose key id is enough', async () => {
    const issuer = { key: mint.parties.kidOnly, iss: undefined };
    assert.equal((await verifyChain(mint.autonomous({ issuer }).payload)).issuer, KID_ONLY);
  });

  it('with every type of root and of hop that is used in practice', async () => {
    for (const typ of ['dc+sd-jwt', 'vc+sd-jwt', 'sd+jwt', 'example+sd-jwt'])
      assert.equal(await refusal(mint.autonomous({ hands: { open: withHeader({ typ }) } }).payload), 'none', typ);
    const draft = { subAgent: withHeader({ typ: 'kb-sd-jwt+kb' }), closed: withHeader({ typ: 'kb-sd-jwt' }) };
    assert.equal(await refusal(mint.autonomous({ delegated: true, hands: draft }).payload), 'none');
  });

  it('whose hop binds to the token alone', async () => {
    const opened = mint.open();
    const jwt = (opened.checkout[0] ?? '').split('~')[0] ?? '';
    const closed = withClaims({ sd_hash: undefined, issuer_jwt_hash: hashOf(jwt) });
    assert.equal(await refusal(mint.close(opened, { hands: { closed } }).payload), 'none');
  });

  it('to the last second of its tolerance', async () => {
    const { payload } = mint.autonomous({ life: 100 });
    assert.equal(await refusal(payload, { now: NOW + 159 }), 'none');
    const { payload: old } = mint.autonomous();
    assert.equal(await refusal(old, { now: NOW - 5 + 360 }), 'none');
    const { payload: early } = mint.autonomous({ hands: { closed: withClaims({ iat: NOW + 60, nbf: NOW + 60 }) } });
    assert.equal(await refusal(early), 'none');
  });

  it('until the earliest of its ends', async () => {
    const ends = async (claims: Parameters<typeof withClaims>[0], life: number): Promise<number> =>
      (await verifyChain(mint.autonomous({ life, hands: { open: withClaims(claims) } }).payload)).ends - NOW;
    assert.equal(await ends({}, 100), 100);
    assert.equal(await ends({ exp: NOW + 50 }, 100), 50);
    assert.equal(await ends({ exp: NOW + HOUR }, HOUR), 295);
  });
});

const found = (key: FoundKey): TrustedIssuers => ({ find: async () => key });
const askedFor = async (header: object, claims: object): Promise<KeyChoice | undefined> => {
  let asked: KeyChoice | undefined;
  const noting: TrustedIssuers = {
    find(choice) {
      asked = choice;
      return { kind: 'refused', reason: 'untrusted_issuer' };
    },
  };
  await rootKey(noting, { ...header }, { ...claims }).catch(() => undefined);
  return asked;
};

describe('the key of a root', () => {
  it('is chosen by issuer, key id and certificates, and by nothing else', async () => {
    assert.deepEqual(
      await askedFor({ kid: 'a', x5c: ['AA', 'BB'], jwk: {}, jku: 'https://x', x5u: 'y' }, { iss: 'i' }),
      {
        iss: 'i',
        kid: 'a',
        x5c: ['AA', 'BB'],
      },
    );
    assert.deepEqual(await askedFor({}, {}), { iss: undefined, kid: undefined, x5c: undefined });
  });
  it('is not asked for when the issuer is no text', async () => {
    assert.equal(await askedFor({ kid: 'a' }, { iss: ['i'] }), undefined);
  });
  it('is not found by a key id that is no text, after the issuer was found to be trusted', async () => {
    const asked = await askedFor({ kid: ['a'] }, { iss: 'i' });
    assert.deepEqual([asked?.iss, asked?.kid], ['i', undefined]);
    const numbered = { open: withHeader({ kid: 5 }) };
    assert.equal(await refusal(mint.autonomous({ hands: numbered }).payload), 'unknown_key');
    const stranger = { key: mint.parties.provider, iss: 'https://evil.example' };
    assert.equal(await refusal(mint.autonomous({ issuer: stranger, hands: numbered }).payload), 'untrusted_issuer');
    // The key that a certificate has chosen does not make the token a right one.
    const key = { alg: 'ES256', key: mint.parties.provider.publicKey } as const;
    const certified = found({ kind: 'found', issuer: PROVIDER, role: { kind: 'mandates' }, key });
    assert.equal(await refusal(mint.autonomous({ hands: numbered }).payload, { trust: certified }), 'unknown_key');
    const nameless = mint.autonomous({ hands: { open: withHeader({ kid: undefined }) } }).payload;
    assert.equal(await refusal(nameless, { trust: certified }), 'none');
  });
  it('is not found by certificates that are none', async () => {
    for (const x5c of ['AA', [1], [['AA']], {}, null])
      assert.deepEqual((await askedFor({ x5c }, {}))?.x5c, [], JSON.stringify(x5c));
  });
  it('may have to be fetched', async () => {
    const late: TrustedIssuers = { find: async (choice) => trust.find(choice) };
    assert.equal((await verifyChain(mint.autonomous().payload, { trust: late })).issuer, PROVIDER);
  });
  it('is for one algorithm, whatever else is allowed', async () => {
    const ed = createKey('ed', 'EdDSA');
    const issuer = { key: mint.parties.provider, iss: PROVIDER };
    const key = { alg: 'EdDSA', key: ed.publicKey } as const;
    const other = found({ kind: 'found', issuer: PROVIDER, role: { kind: 'mandates' }, key });
    assert.equal(await refusal(mint.autonomous({ issuer }).payload, { trust: other }), 'unsupported_algorithm');
  });
  it('may be of another algorithm only if the operator allows it', async () => {
    const ed = createKey('ed', 'EdDSA');
    const key = { alg: 'EdDSA', key: ed.publicKey } as const;
    const trusting = found({ kind: 'found', issuer: PROVIDER, role: { kind: 'mandates' }, key });
    const { payload } = mint.autonomous({ issuer: { key: ed, iss: PROVIDER } });
    const allowing = profileWith({ algorithms: new Set(['ES256', 'EdDSA']) });
    assert.equal(await refusal(payload, { trust: trusting }), 'unsupported_algorithm');
    assert.equal(await refusal(payload, { trust: trusting, profile: allowing }), 'none');
  });
  it('is never the one that the head brings along', async () => {
    const hand = { ...withHeader({ jwk: mint.parties.stranger.publicJwk, jku: 'https://x' }) };
    assert.equal(await refusal(mint.autonomous({ hands: { open: hand } }).payload), 'none');
    assert.equal(
      await refusal(mint.autonomous({ hands: { open: withClaims({ iss: '' }) } }).payload),
      'untrusted_issuer',
    );
  });
});

/** Changes the token at one position of a chain; `before` is the segment that it was made on. */
type Edit = (draft: Draft, before: string, closing: boolean) => Draft;

const { jwt: checkout, jti } = mint.checkout();
const WANTED = [
  lineItems([{ id: 'line_1', acceptable: [{ id: 'market_report', title: 'Market report' }], quantity: 1 }]),
];
const HOLDERS = Array.from({ length: 5 }, (_, at) => createKey(`holder-${at}`));

/** So many segments: a root, sub-agents, and the hop that closes. */
function chain(length: number, at = 0, edit: Edit = (draft) => draft): string {
  const segments: string[] = [];
  for (const [position, holder] of HOLDERS.slice(0, length).entries()) {
    const closing = position === length - 1;
    const content = closing
      ? closedCheckout(checkout)
      : openMandate(VCT.openCheckout, WANTED, { iat: NOW - 60, exp: NOW + 60, holder: holder.publicJwk });
    const previous = segments.at(-1) ?? '';
    const signer = position === 0 ? mint.parties.provider : (HOLDERS[position - 1] ?? holder);
    const hop = { previous, aud: closing ? AUDIENCE : 'sub-agent', nonce: closing ? jti : 'any', iat: NOW - 5 };
    const drafted = (c: typeof content): Draft =>
      position === 0 ? rootDraft(c, { iss: PROVIDER, iat: NOW - 60 }, signer) : hopDraft(c, hop, signer);
    const hand = position === at && at > 0 ? { draft: (draft: Draft) => edit(draft, previous, closing) } : {};
    segments.push(forge(content, drafted, signer, hand));
  }
  return chainOf(segments);
}

const claims =
  (changes: Changes): Edit =>
  (draft) => ({ ...draft, claims: changed(draft.claims, changes) });
const typ =
  (closing: string, handedOn: string): Edit =>
  (draft, _before, isClosing) => ({
    ...draft,
    header: changed(draft.header, { typ: isClosing ? closing : handedOn }),
  });
/** Bound to the token before alone (`jwt`), or to all of its segment. */
const bound =
  (by: 'sd_hash' | 'issuer_jwt_hash', to: 'jwt' | 'segment', besides: Changes = {}): Edit =>
  (draft, before, closing) => {
    const hash = hashOf(to === 'jwt' ? (before.split('~')[0] ?? '') : before);
    return claims({ ...besides, [by]: hash })(draft, before, closing);
  };

describe('a chain', () => {
  for (const length of [2, 3, 4])
    it(`may have ${length} segments`, async () => assert.equal(await refusal(chain(length)), 'none'));
  it('may not have 5', async () => assert.equal(await refusal(chain(5)), 'mandate_malformed'));
});

const EDITS: readonly (readonly [what: string, result: Reason | 'none', edit: Edit])[] = [
  ['bound to the token before alone', 'none', bound('issuer_jwt_hash', 'jwt', { sd_hash: undefined })],
  ['bound both ways, each of them right', 'chain_broken', bound('issuer_jwt_hash', 'jwt')],
  ['bound in no way', 'chain_broken', claims({ sd_hash: undefined })],
  [
    'whose hash of the token covers the disclosures',
    'chain_broken',
    bound('issuer_jwt_hash', 'segment', { sd_hash: undefined }),
  ],
  ['whose hash of all covers the token alone', 'chain_broken', bound('sd_hash', 'jwt')],
  ['without nonce', 'claims_invalid', claims({ nonce: undefined })],
  ['without audience', 'claims_invalid', claims({ aud: undefined })],
  ['without time', 'claims_invalid', claims({ iat: undefined })],
  ['from the edge of the future', 'none', claims({ iat: NOW + 60 })],
  ['from the future', 'not_yet_valid', claims({ iat: NOW + 61 })],
  ['in the last second of its end', 'none', claims({ exp: NOW - 59 })],
  ['that ended', 'expired', claims({ exp: NOW - 60 })],
  ['that has not begun', 'not_yet_valid', claims({ nbf: NOW + 61 })],
  ['that hides something', 'disclosure_missing', claims({ _sd: [hashOf('decoy')] })],
  ['in the spelling of the draft', 'none', typ('kb-sd-jwt', 'kb-sd-jwt+kb')],
  ['of the type of the other position', 'unexpected_typ', typ('kb+sd-jwt+kb', 'kb+sd-jwt')],
  ['of the type of a root', 'unexpected_typ', typ('dc+sd-jwt', 'dc+sd-jwt')],
  [
    'with a key for what it does not hand on to',
    'chain_broken',
    claims({ cnf: { jwk: createKey('other').publicJwk } }),
  ],
];

for (const at of [1, 2, 3])
  describe(`hop ${at} of 3`, () => {
    for (const [what, result, edit] of EDITS)
      it(`${what}: ${result}`, async () => assert.equal(await refusal(chain(4, at, edit)), result));
  });

/**
 * A verifier that counts how often the key of an issuer was asked for, which is once a root that is
 * not known.
 */
function counting(cache: ChainCache = createChainCache()) {
  const asked: KeyChoice[] = [];
  const find = (choice: KeyChoice): FoundKey | Promise<FoundKey> => {
    asked.push(choice);
    return trust.find(choice);
  };
  const verify = createChainVerifier({ profile: profileWith(), trust: { find }, cache });
  const refusal = (presentation: string, now = NOW) => lateRefusalOf(() => verify(presentation, 'checkout', now));
  return { verify, refusal, asked };
}

describe('an open mandate that was proven', () => {
  it('is known when another is closed under it, and gives the same chain', async () => {
    const { verify, asked } = counting();
    const opened = mint.open({ delegated: true });
    const first = await verify(mint.close(opened).payload, 'checkout', NOW);
    const second = await verify(mint.close(opened).payload, 'checkout', NOW);
    assert.equal(asked.length, 1);
    assert.deepEqual(second.open, first.open);
    assert.deepEqual([second.issuer, second.role], [first.issuer, first.role]);
    assert.notEqual(second.closed.id, first.closed.id);
  });

  it('is not known in another text', async () => {
    const { verify, asked } = counting();
    const { segments } = mint.autonomous();
    await verify(chainOf(segments), 'checkout', NOW);
    const [jwt = '', ...texts] = (segments[0] ?? '').slice(0, -1).split('~');
    const [a = '', b = '', ...more] = texts;
    const reordered = [jwt, b, a, ...more, ''].join('~');
    assert.equal(
      await lateRefusalOf(() => verify(chainOf([reordered, segments[1] ?? '']), 'checkout', NOW)),
      'chain_broken',
    );
    assert.equal(asked.length, 2);
  });

  it('still has to be closed by its agent, and in time', async () => {
    const { refusal } = counting();
    const opened = mint.open({ life: 100 });
    const closedBy = (hand: object): string => mint.close(opened, { hands: { closed: hand } }).payload;
    assert.equal(await refusal(mint.close(opened).payload), 'none');
    assert.equal(await refusal(closedBy({ signer: mint.parties.stranger })), 'invalid_signature');
    assert.equal(await refusal(closedBy(withClaims({ sd_hash: 'x' }))), 'chain_broken');
    assert.equal(await refusal(mint.close(opened).payload, NOW + 160), 'expired');
  });

  it('does not close a chain that others were closed under', async () => {
    const { refusal } = counting();
    const { segments, payload } = mint.autonomous({ delegated: true });
    assert.equal(await refusal(payload), 'none');
    assert.equal(await refusal(chainOf(segments.slice(0, 2))), 'unexpected_typ');
    assert.equal(await refusal(chainOf(segments.slice(0, 1))), 'wrong_mandate_type');
  });

  it('is proven again after five minutes, or after its end', async () => {
    for (const [life, later] of [
      [86_400, SEGMENT_TTL_SECONDS],
      [100, 100],
    ] as const) {
      const { refusal, asked } = counting();
      const opened = mint.open({ life });
      for (const now of [NOW, NOW + later - 1, NOW + later])
        assert.equal(await refusal(mint.close(opened, { now }).payload, now), 'none');
      assert.equal(asked.length, 2, `${later}`);
    }
  });

  it('is not kept when what was closed under it is wrong', async () => {
    const { refusal, asked } = counting();
    const opened = mint.open();
    const wrong = mint.close(opened, { hands: { closed: withClaims({ aud: 'other' }) } });
    assert.equal(await refusal(wrong.payload), 'audience_mismatch');
    assert.equal(await refusal(mint.close(opened).payload), 'none');
    assert.equal(asked.length, 2);
  });

  it('names its issuer, also where the chain is refused later', async () => {
    const { verify } = counting();
    const opened = mint.open();
    const noted: string[] = [];
    const note = (issuer: string): void => void noted.push(issuer);
    const wrong = mint.close(opened, { hands: { closed: withClaims({ aud: 'other' }) } });
    await verify(mint.close(opened).payload, 'checkout', NOW, note);
    await lateRefusalOf(() => verify(wrong.payload, 'checkout', NOW, note));
    assert.equal(noted.length, 2);
  });
});

describe('the cache of chains', () => {
  const segment = { id: 'a' } as ProvenSegment;

  it(`holds ${MAX_CACHED_SEGMENTS} segments and forgets the one that was not used`, () => {
    const cache = createChainCache();
    for (let n = 0; n < MAX_CACHED_SEGMENTS; n += 1) cache.keep(`${n}`, segment, NOW + 60, NOW);
    assert.equal(cache.segment('0', NOW), segment);
    cache.keep('one more', segment, NOW + 60, NOW);
    assert.equal(cache.segment('1', NOW), undefined);
    assert.equal(cache.segment('0', NOW), segment);
    assert.equal(cache.segment('one more', NOW), segment);
  });

  it('keeps a segment anew that it had kept too long', () => {
    const cache = createChainCache();
    cache.keep('a', segment, NOW + 10, NOW);
    assert.equal(cache.segment('a', NOW + 10), undefined);
    cache.keep('a', segment, NOW + 30, NOW + 10);
    assert.equal(cache.segment('a', NOW + 29), segment);
    assert.equal(cache.segment('a', NOW + 30), undefined);
  });
});
