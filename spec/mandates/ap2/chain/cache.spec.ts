import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type ChainCache,
  createChainCache,
  createChainVerifier,
  MAX_CACHED_SEGMENTS,
  type ProvenSegment,
  SEGMENT_TTL_SECONDS,
} from '../../../../src/mandates/ap2/chain.ts';
import type { FoundKey, KeyChoice } from '../../../../src/mandates/ap2/issuers.ts';
import { chainOf } from '../../../../tools/mandate/maker/tokens.ts';
import { withClaims } from '../../../support/ap2/hands.ts';
import { NOW, profileWith } from '../../../support/ap2/purchase.ts';
import { lateRefusalOf } from '../refusal.ts';
import { mint, trust } from './chains.ts';

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
