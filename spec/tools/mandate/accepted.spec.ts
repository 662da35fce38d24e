import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { TrustedIssuers } from '../../../src/mandates/ap2/trust/trust.ts';
import { challengeBody } from '../../support/ap2/challenge.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { purchaseWith } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import { acgMandate, folder } from './acg-mandate.ts';

/**
 * What the command line makes, shown to the verifier of a shop that trusts the keys of `mandate
 * keys`.
 */
describe('a mandate of the command line', () => {
  const place = folder();
  const mint = createMint();
  const now = Math.floor(Date.now() / 1_000);
  const payer = purchaseWith().payment?.payer ?? '';
  const keys = ['--keys', place.at('keys')];
  const challenge = ['--challenge', place.at('402.json')];
  let verify: ReturnType<typeof verifierFor>;

  before(async () => {
    const made = await acgMandate(['keys', '--out', place.at('keys')]);
    assert.equal(made.code, 0, made.stderr);
    verify = verifierFor(mint, { trust: trustOf(place.at('keys/TEST-issuer.json')) });
    writeFileSync(place.at('402.json'), JSON.stringify(challengeBody(mint, { now })));
  });
  after(() => place.remove());

  const accepted = async (args: readonly string[]) => {
    const { stdout, stderr } = await acgMandate([...args, ...keys, ...challenge]);
    const verdict = await verify(stdout.trim(), { now: now + 10 });
    assert.equal(verdict.kind, 'accepted', `${verdict.kind === 'refused' ? verdict.reason : ''} ${stderr}`);
    return verdict.kind === 'accepted' ? verdict : assert.fail();
  };

  it('is accepted when an agent closed it', async () => {
    await acgMandate(['open', ...keys, ...challenge, '--out', place.at('open.json')]);
    const { mode, claim } = await accepted(['close', '--open', place.at('open.json')]);
    assert.equal(mode, 'autonomous');
    assert.equal(claim.open[0]?.recurrence, undefined);
  });

  it('is accepted with all limits that an open payment mandate may have', async () => {
    const often = ['--max', '0.02', '--budget', '0.1', '--every', 'monthly', '--uses', '5'];
    const limits = [...often, '--payer', `eip155:84532:${payer}`, '--days', '20'];
    await acgMandate(['open', ...keys, ...challenge, '--out', place.at('often.json'), ...limits]);
    const { claim } = await accepted(['close', '--open', place.at('often.json'), '--payer', payer]);
    const periods = claim.open.map(({ recurrence }) => [
      recurrence?.units,
      recurrence?.budgetUnits,
      recurrence?.maxOccurrences,
    ]);
    assert.deepEqual(periods, [
      ['10000', '100000', 5],
      ['10000', '100000', 5],
    ]);
  });

  it('is accepted when the provider signed that purchase, with and without its payment', async () => {
    assert.equal((await accepted(['direct'])).mode, 'direct');
    const { claim } = await accepted(['direct', '--payer', payer]);
    assert.equal(claim.once.length, 3, 'two mandates and one checkout');
  });
});

function trustOf(file: string): TrustedIssuers {
  const { id, keys } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly id: string;
    readonly keys: readonly JwkOf[];
  };
  const [jwk] = keys;
  if (jwk === undefined) throw new Error(`${file} has no key`);
  const key = { alg: 'ES256', key: createPublicKey({ key: { ...jwk }, format: 'jwk' }) } as const;
  return {
    find: ({ iss, kid }) =>
      iss === id && kid === jwk.kid
        ? { kind: 'found', issuer: id, role: { kind: 'mandates' }, key }
        : { kind: 'refused', reason: 'untrusted_issuer' },
  };
}

interface JwkOf {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y: string;
  readonly kid: string;
}
