import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import jsonPatch from 'fast-json-patch';
import { injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Pod } from '../../../src/sidecar/injection/pod.ts';
import { MalformedReview, readAdmissionRequest, review } from '../../../src/sidecar/injector/review.ts';
import { ARBITRARY_POD } from '../injection/arbitrary-pods.ts';
import { bytesOf, reviewOf } from './reviews.ts';

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
