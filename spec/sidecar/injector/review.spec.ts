import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import jsonPatch from 'fast-json-patch';
import { type Injection, injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Pod } from '../../../src/sidecar/injection/pod.ts';
import { MalformedReview, type Review, readAdmissionRequest, review } from '../../../src/sidecar/injector/review.ts';
import { ARBITRARY_POD } from '../injection/inject-pod.properties.spec.ts';
import { bytesOf, RECORDED_POD, reviewOf } from './reviews.ts';

const OWN = 'agent-commerce-system';
const UID = 'd11be401-59e6-4581-98b9-cae34377711d';

const usual = (pod: Pod): Injection => injectPod(pod, USUAL_OPTIONS);

function reviewed(parts: object = {}, pod: unknown = RECORDED_POD, inject = usual): Review {
  return review(readAdmissionRequest(bytesOf(reviewOf({ ...parts }, pod))), { inject, namespace: OWN });
}

function labelled(labels: Readonly<Record<string, string>>): Pod {
  return { ...RECORDED_POD, metadata: { ...RECORDED_POD.metadata, labels } };
}

/** What injection would say, without its work. */
function saying(warnings: readonly string[]): () => Injection {
  return () => ({ kind: 'injected', pod: RECORDED_POD, patch: [], warnings });
}

describe('a review', () => {
  it('answers the recorded one with the patch of injection', () => {
    const { result, response } = reviewed();
    const injection = usual(RECORDED_POD);
    assert.ok(injection.kind === 'injected');
    const { patch = '', ...rest } = response;
    assert.equal(result, 'injected');
    assert.deepEqual(JSON.parse(Buffer.from(patch, 'base64').toString()), injection.patch);
    const { warnings, ...bare } = rest;
    assert.deepEqual(bare, {
      uid: UID,
      allowed: true,
      patchType: 'JSONPatch',
      auditAnnotations: { result: 'injected' },
    });
    assert.deepEqual(warnings ?? [], injection.warnings);
  });

  it('names neither a patch nor its type when nothing changes', () => {
    const first = usual(RECORDED_POD);
    assert.ok(first.kind === 'injected');
    const { result, response } = reviewed({}, first.pod);
    assert.equal(result, 'unchanged');
    assert.equal('patch' in response || 'patchType' in response, false);
    assert.equal(response.allowed, true);
  });

  it('refuses in the words of injection, as an invalid object', () => {
    const { result, response } = reviewed({}, RECORDED_POD, () => ({ kind: 'refused', message: 'do this instead' }));
    assert.equal(result, 'refused');
    assert.deepEqual(response, {
      uid: UID,
      allowed: false,
      status: { code: 422, reason: 'Invalid', message: 'do this instead' },
      auditAnnotations: { result: 'refused' },
    });
  });

  it('refuses when injection throws, without a word of what was thrown', () => {
    const { result, response, fault } = reviewed({}, RECORDED_POD, () => {
      throw new TypeError('secret internals');
    });
    assert.deepEqual([result, response.allowed, response.status?.code], ['failed', false, 500]);
    assert.doesNotMatch(JSON.stringify(response), /secret internals|TypeError/);
    assert.ok(fault instanceof TypeError);
  });

  it('gives a dry run the same answer', () => {
    assert.deepEqual(reviewed({ dryRun: true }), reviewed({ dryRun: false }));
  });

  const refusing = (): Injection => assert.fail('injection is not asked');
  for (const namespace of ['kube-system', 'kube-node-lease', 'kube-public', OWN])
    it(`lets every pod of ${namespace} pass as it is`, () => {
      const { result, response } = reviewed({ namespace }, RECORDED_POD, refusing);
      assert.equal(result, 'passed');
      assert.deepEqual(response, { uid: UID, allowed: true, auditAnnotations: { result: 'passed' } });
    });

  for (const [what, labels] of [
    ['without the label', { app: 'm' }],
    ['with another value of the label', { 'agent-commerce.dev/inject': 'true' }],
  ] as const)
    it(`lets a pod ${what} pass as it is`, () => {
      assert.equal(reviewed({}, labelled(labels), refusing).result, 'passed');
    });

  it('injects a pod that only calls itself the injector', () => {
    const labels = { 'agent-commerce.dev/inject': 'enabled', 'app.kubernetes.io/name': 'agent-commerce-injector' };
    assert.equal(reviewed({}, labelled(labels)).result, 'injected');
  });

  it('lets what is no creation of a pod pass as it is', () => {
    assert.equal(reviewed({ operation: 'UPDATE' }, RECORDED_POD, refusing).result, 'passed');
  });
});

describe('the warnings of a review', () => {
  const warningsOf = (warnings: readonly string[]) => reviewed({}, RECORDED_POD, saying(warnings)).response.warnings;

  it('are cut behind 256 characters, which may be any characters', () => {
    const whole = '𝟙'.repeat(256);
    assert.deepEqual(warningsOf([whole, `${whole}2`]), [whole, `${'𝟙'.repeat(255)}…`]);
  });

  it('are one line each', () => {
    assert.deepEqual(warningsOf(['a\r\nb\u0000c']), ['a b c']);
  });

  it('are about 4 kB together, and say how many are left out', () => {
    const told = warningsOf(Array.from({ length: 40 }, (_, index) => `${index} ${'w'.repeat(240)}`)) ?? [];
    assert.equal(told.at(-1), `${40 - told.length + 1} more warnings are left out`);
    const length = told.join('').length;
    assert.ok(length > 3_700 && length <= 4_096, `${length} characters`);
  });

  it('are not there when there are none', () => {
    assert.equal(warningsOf([]), undefined);
  });
});

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

const PODS = 500;

/** The same pod, asking for the gateway, as it comes over the wire. */
function asking(pod: Pod): Pod {
  const labels = { ...pod.metadata?.labels, 'agent-commerce.dev/inject': 'enabled' };
  return JSON.parse(JSON.stringify({ ...pod, metadata: { ...pod.metadata, labels } }));
}

/** What an API server makes of an answer that came over the wire; undefined: it refuses. */
function admitted(pod: Pod): Pod | undefined {
  const request = readAdmissionRequest(bytesOf(reviewOf({}, pod)));
  const inject = (read: Pod) => injectPod(read, USUAL_OPTIONS);
  const { response } = review(request, { inject, namespace: 'agent-commerce-system' });
  const { allowed, patch, patchType } = JSON.parse(JSON.stringify(response));
  assert.equal(patch === undefined, patchType === undefined, 'a patch and its type come together');
  if (!allowed) return undefined;
  if (patch === undefined) return pod;
  const operations = JSON.parse(Buffer.from(patch, 'base64').toString());
  return jsonPatch.applyPatch(structuredClone(pod), operations, true).newDocument;
}

/** The recorded review in which some members, at any depth, are whatever JSON. */
const ARBITRARY_REVIEW = fc
  .array(fc.tuple(fc.noBias(fc.nat({ max: 9_999 })), fc.jsonValue()), { minLength: 1, maxLength: 3 })
  .map((changes) => {
    const made: unknown = JSON.parse(JSON.stringify(reviewOf()));
    for (const [at, value] of changes) {
      const places = placesIn(made);
      const [parent, member] = places[at % places.length] ?? assert.fail();
      parent[member] = value;
    }
    return made;
  });

type Parent = { [member: string]: unknown };

/** Every member of a document with what it is in. */
function placesIn(value: unknown): readonly (readonly [Parent, string])[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.keys(value).flatMap((member) => [
    [value as Parent, member] as const,
    ...placesIn((value as Parent)[member]),
  ]);
}

describe('a review of anything', () => {
  it('is an answer, or a refusal in words, and never throws', () => {
    const inject = (pod: Pod) => injectPod(pod, USUAL_OPTIONS);
    let answered = 0;
    fc.assert(
      fc.property(ARBITRARY_REVIEW, (made) => {
        try {
          const { response } = review(readAdmissionRequest(bytesOf(made)), { inject, namespace: 'system' });
          assert.equal(typeof response.uid, 'string');
          answered += 1;
        } catch (thrown) {
          assert.ok(thrown instanceof MalformedReview, String(thrown));
        }
      }),
      { numRuns: 1_000 },
    );
    assert.ok(answered > 100, `${answered} answered`);
  });
});

describe('a pod that was reviewed', () => {
  it(`is what injection makes of it, for ${PODS} pods, and a second review changes nothing`, () => {
    let [injected, refused] = [0, 0];
    const seed = randomInt(2 ** 31);
    for (const made of fc.sample(ARBITRARY_POD, { numRuns: PODS, seed })) {
      const pod = asking(made);
      const injection = injectPod(pod, USUAL_OPTIONS);
      const after = admitted(pod);
      const wanted = injection.kind === 'injected' ? JSON.parse(JSON.stringify(injection.pod)) : undefined;
      assert.deepEqual(after, wanted, `seed ${seed}: ${JSON.stringify(pod)}`);
      if (after === undefined) refused += 1;
      else {
        assert.deepEqual(admitted(after), after, `seed ${seed}: ${JSON.stringify(pod)}`);
        injected += 1;
      }
    }
    assert.ok(injected > PODS / 4 && refused > 0, `${injected} injected, ${refused} refused`);
  });
});
