import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createMint } from '../../spec/support/ap2/mint.ts';
import { hashed } from '../../spec/support/ap2/oracle.ts';
import { verifierFor } from '../../spec/support/ap2/verifier.ts';
import type { MandateVerdict } from '../../src/mandates/ap2/reasons.ts';
import { headersOf, hunted } from './flips/hunt.ts';

/** 10,000 and more: `node verification/mandates/flips.ts 10000`. */
const COUNT = 2_000;
/** A busy machine tries fewer. */
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

  it('is accepted as new by a verifier that identifies mandates by their bytes', async () => {
    // One more space in the envelope: the same mandate, another text.
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
});
