import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rootKey } from '../../../../src/mandates/ap2/chain.ts';
import type { FoundKey, KeyChoice, TrustedIssuers } from '../../../../src/mandates/ap2/issuers.ts';
import { Refused } from '../../../../src/mandates/ap2/reasons.ts';
import { withClaims, withHeader } from '../../../support/ap2/hands.ts';
import { createKey, PROVIDER } from '../../../support/ap2/keys.ts';
import { profileWith } from '../../../support/ap2/purchase.ts';
import { mint, refusal, trust, verifyChain } from './chains.ts';

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
  it('that cannot be had is no fault of the mandate, and has a cause for the log', async () => {
    const cause = new Error('no route');
    const gone = found({ kind: 'unavailable', cause });
    await assert.rejects(verifyChain(mint.autonomous().payload, { trust: gone }), (error) => {
      assert.ok(error instanceof Refused);
      assert.deepEqual(
        [error.reason, error.cause, error.message],
        ['provider_unavailable', cause, 'provider_unavailable'],
      );
      return true;
    });
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
