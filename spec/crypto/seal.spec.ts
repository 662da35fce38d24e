import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { createAnswerSeal } from '../../src/checkouts/attempts.ts';
import { MAX_DOCUMENT_BYTES } from '../../src/checkouts/operations.ts';
import { keyIdOf, type SealingKey, seal } from '../../src/crypto/seal.ts';

const OLD: SealingKey = { id: '2026-01', key: Buffer.alloc(32, 1) };
const NEW: SealingKey = { id: '2026-02', key: Buffer.alloc(32, 2) };
const CONTEXT = { name: 'n'.repeat(43), fingerprint: 'f'.repeat(43), status: 200 };
const BODY = Buffer.from('{"id":"cs_1","buyer":{"email":"customer@example.com"}}');

describe('a sealed answer', () => {
  for (const bytes of [0, 1, 2_048, 2_049, MAX_DOCUMENT_BYTES])
    it(`of ${bytes} bytes comes back byte for byte, compressible or not`, () => {
      const ring = createAnswerSeal([OLD]);
      for (const body of [Buffer.alloc(bytes, 'a'), randomBytes(bytes)]) {
        const opened = ring.open(ring.seal(body, CONTEXT), CONTEXT);
        assert.ok(opened !== undefined && body.equals(opened));
      }
    });

  it('is text without the body in it, and never the same twice', () => {
    const ring = createAnswerSeal([OLD]);
    const [one, other] = [ring.seal(BODY, CONTEXT), ring.seal(BODY, CONTEXT)];
    assert.match(one, /^[A-Za-z0-9_-]+$/);
    assert.notEqual(one, other);
    assert.ok(!Buffer.from(one, 'base64url').includes('customer'));
  });

  it('of more than 2 kB is compressed before', () => {
    const sealed = createAnswerSeal([OLD]).seal(Buffer.alloc(100_000, '{"a":1}'), CONTEXT);
    assert.ok(sealed.length < 2_000, `${sealed.length} characters`);
  });

  it('opens for its own name, fingerprint and status alone', () => {
    const ring = createAnswerSeal([OLD]);
    const sealed = ring.seal(BODY, CONTEXT);
    for (const other of [{ name: 'm'.repeat(43) }, { fingerprint: 'g'.repeat(43) }, { status: 201 }])
      assert.equal(ring.open(sealed, { ...CONTEXT, ...other }), undefined);
  });

  it('does not open when any character of it was changed, cut or added', () => {
    const ring = createAnswerSeal([OLD]);
    const sealed = ring.seal(BODY, CONTEXT);
    for (let at = 0; at < sealed.length - 1; at += 1) {
      const changed = `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`;
      assert.equal(ring.open(changed, CONTEXT), undefined, `character ${at}`);
    }
    for (const wrong of [sealed.slice(0, -4), `${sealed}AAAA`, '', 'A', 'AQAA', '€'])
      assert.equal(ring.open(wrong, CONTEXT), undefined, wrong);
  });

  it('is opened by every key of the ring and sealed by the first', () => {
    const before = createAnswerSeal([OLD]).seal(BODY, CONTEXT);
    const ring = createAnswerSeal([NEW, OLD]);
    assert.ok(BODY.equals(ring.open(before, CONTEXT) ?? Buffer.alloc(0)));
    assert.equal(keyIdOf(Buffer.from(ring.seal(BODY, CONTEXT), 'base64url')), NEW.id);
  });

  it('does not open without its key, nor with another key of the same id', () => {
    const sealed = createAnswerSeal([OLD]).seal(BODY, CONTEXT);
    assert.equal(createAnswerSeal([NEW]).open(sealed, CONTEXT), undefined);
    assert.equal(createAnswerSeal([{ ...NEW, id: OLD.id }]).open(sealed, CONTEXT), undefined);
  });

  it('that decompresses to more than a document may have is not opened', () => {
    const { name, fingerprint, status } = CONTEXT;
    const large = Buffer.alloc(MAX_DOCUMENT_BYTES + 1);
    const sealed = seal(large, OLD, [name, fingerprint, status], { deflate: true }).toString('base64url');
    assert.equal(createAnswerSeal([OLD]).open(sealed, CONTEXT), undefined);
  });
});
