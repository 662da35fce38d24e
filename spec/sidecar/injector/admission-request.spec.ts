import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MalformedReview, readAdmissionRequest } from '../../../src/sidecar/injector/review.ts';
import { bytesOf, RECORDED_POD, reviewOf } from './reviews.ts';

const DEEPEST = 64;

/** JSON nested so deep, the review's own two levels and its pod among them. */
function nested(levels: number): Buffer {
  const inside = levels - 4;
  const text = JSON.stringify(reviewOf({}, { ...RECORDED_POD, metadata: { deep: '#' } }));
  return Buffer.from(text.replace('"#"', '['.repeat(inside) + ']'.repeat(inside)));
}

describe('an admission request', () => {
  it('is read as an API server 1.36.2 sends it', () => {
    assert.deepEqual(readAdmissionRequest(bytesOf(reviewOf())), {
      uid: 'd11be401-59e6-4581-98b9-cae34377711d',
      namespace: 'shop',
      name: 'w1',
      dryRun: false,
      pod: RECORDED_POD,
    });
  });

  it('has no name when the server is to make one', () => {
    for (const name of [undefined, null, ''])
      assert.equal(readAdmissionRequest(bytesOf(reviewOf({ name }))).name, '', String(name));
  });

  for (const [what, parts] of [
    ['an update', { operation: 'UPDATE' }],
    ['a deletion', { operation: 'DELETE', object: null }],
    ['a connection', { operation: 'CONNECT' }],
    ['a binding of a pod', { subResource: 'binding' }],
    ['another resource', { resource: { group: 'apps', version: 'v1', resource: 'deployments' } }],
    ['pods of another group', { resource: { group: 'metrics.k8s.io', version: 'v1', resource: 'pods' } }],
    ['pods of another version', { kind: { group: '', version: 'v2', kind: 'Pod' } }],
  ] as const)
    it(`carries no pod for ${what}`, () => {
      assert.equal(readAdmissionRequest(bytesOf(reviewOf(parts))).pod, undefined);
    });

  const { request } = reviewOf() as { request: object };
  for (const [what, bytes, message] of [
    ['nothing', Buffer.alloc(0), /well-formed JSON/],
    ['truncated JSON', bytesOf(reviewOf()).subarray(0, 500), /well-formed JSON/],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), /UTF-8/],
    ['a list', bytesOf([reviewOf()]), /one JSON object/],
    ['another kind', bytesOf({ kind: 'Pod', apiVersion: 'v1' }), /of kind AdmissionReview/],
    [
      'the version before',
      bytesOf({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1beta1', request }),
      /apiVersion admission\.k8s\.io\/v1/,
    ],
    ['an answer', bytesOf({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' }), /request is missing/],
    ['a number as uid', bytesOf(reviewOf({ uid: 7 })), /request\.uid/],
    ['an empty uid', bytesOf(reviewOf({ uid: '' })), /request\.uid/],
    ['a uid that is too long', bytesOf(reviewOf({ uid: 'u'.repeat(129) })), /request\.uid/],
    ['no operation', bytesOf(reviewOf({ operation: undefined })), /request\.operation/],
    ['a namespace that is no text', bytesOf(reviewOf({ namespace: {} })), /request\.namespace/],
    ['no pod', bytesOf(reviewOf({ object: null })), /request\.object must be/],
    ['a pod without a specification', bytesOf(reviewOf({}, { kind: 'Pod' })), /object\.spec/],
    ['metadata that are a list', bytesOf(reviewOf({}, { ...RECORDED_POD, metadata: [] })), /object\.metadata/],
    ['no containers', bytesOf(reviewOf({}, { spec: { containers: [] } })), /spec\.containers/],
    ['a container without a name', bytesOf(reviewOf({}, { spec: { containers: [{}] } })), /spec\.containers/],
    ['JSON that is nested too deep', nested(DEEPEST + 1), /deeper than 64 levels/],
    ['1 MiB of open brackets', Buffer.alloc(1 << 20, '['), /deeper than 64 levels/],
  ] as const)
    it(`is refused in words when it is ${what}`, () => {
      assert.throws(
        () => readAdmissionRequest(bytes),
        (thrown) => thrown instanceof MalformedReview && message.test(thrown.message),
      );
    });

  it('may be nested as deep as the bound, and hold brackets in its texts', () => {
    assert.doesNotThrow(() => readAdmissionRequest(nested(DEEPEST)));
    const annotations = { a: '\\"['.repeat(500) };
    assert.doesNotThrow(() =>
      readAdmissionRequest(bytesOf(reviewOf({}, { ...RECORDED_POD, metadata: { annotations } }))),
    );
  });

  it('keeps a member that is called like the prototype what it is', () => {
    const text = JSON.stringify(reviewOf()).replace('"app":"m"', '"__proto__":{"polluted":true}');
    const { pod } = readAdmissionRequest(Buffer.from(text));
    assert.equal(Object.hasOwn(pod?.metadata?.labels ?? {}, '__proto__'), true);
    assert.equal('polluted' in {}, false);
  });
});
