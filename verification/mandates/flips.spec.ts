import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createMint } from '../../spec/support/ap2/mint.ts';
import { hashed } from '../../spec/support/ap2/oracle.ts';
import { NOW } from '../../spec/support/ap2/purchase.ts';
import { verifierFor } from '../../spec/support/ap2/verifier.ts';
import type { MandateVerdict } from '../../src/mandates/ap2/model/verdict.ts';
import { headersOf, hunted } from './flips/hunt.ts';

/** 10,000 and more: `node verification/mandates/flips.ts 10000`. */
const COUNT = 2_000;
/** On a busy machine fewer are tried. */
const WITHIN_MS = 5_000;

describe('a header with one small fault', () => {
  const mint = createMint();
  const headers = headersOf(mint);
  const verify = verifierFor(mint);

  it('is never accepted as a new mandate', async () => {
    const { tried, found, refused } = await hunted(verify, headers, { seed: 7, count: COUNT, withinMs: WITHIN_MS });
    assert.deepEqual(found, []);
    assert.ok(tried >= 100, `only ${tried} were tried`);
    assert.ok(refused.size >= 6, `faults of one kind only: ${[...refused.keys()].join(', ')}`);
  });

  it('would be found out, if a verifier told mandates apart by their bytes', async () => {
    // One more space in the envelope is enough: the same mandate, another text.
    const careless = async (header: string): Promise<MandateVerdict> => {
      const verdict = await verify(header);
      if (verdict.kind === 'refused') return verdict;
      return { ...verdict, claim: { ...verdict.claim, once: [`m:${hashed(header)}`] } };
    };
    const [first = ''] = headers;
    const spaced = Buffer.from(` ${Buffer.from(first, 'base64url').toString()}`).toString('base64url');
    assert.equal((await verify(spaced)).kind, 'accepted', 'a space more is no other mandate');
    const { found, replayed } = await hunted(careless, headers, { seed: 7, count: COUNT, withinMs: WITHIN_MS });
    assert.equal(replayed, 0);
    assert.ok(found.length > 0);
  });

  it('is the same mandate with the other form of its signature', async () => {
    const [right, malleated] = await Promise.all([
      verify(headers[0] ?? ''),
      verify(withOtherSignature(headers[0] ?? '')),
    ]);
    assert.equal(right.kind, 'accepted');
    assert.equal(malleated.kind, 'accepted');
    if (right.kind !== 'accepted' || malleated.kind !== 'accepted') return;
    assert.deepEqual(malleated.claim, right.claim);
    assert.notEqual(malleated.reference, right.reference);
    assert.ok(right.claim.at === NOW);
  });
});

/** The order of P-256: with (r, s) also (r, n - s) is a signature. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

function withOtherSignature(header: string): string {
  const envelope = JSON.parse(Buffer.from(header, 'base64url').toString()) as { readonly payload: string };
  const segments = envelope.payload.split('~~');
  const [jwt = '', ...disclosures] = (segments.at(-1) ?? '').split('~');
  const dot = jwt.lastIndexOf('.') + 1;
  const bytes = Buffer.from(jwt.slice(dot), 'base64url');
  const s = ORDER - BigInt(`0x${bytes.subarray(32).toString('hex')}`);
  const other = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')]);
  const leaf = [jwt.slice(0, dot) + other.toString('base64url'), ...disclosures].join('~');
  const payload = segments.with(-1, leaf).join('~~');
  return Buffer.from(JSON.stringify({ ...envelope, payload })).toString('base64url');
}
