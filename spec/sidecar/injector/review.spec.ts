import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Injection, injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Pod } from '../../../src/sidecar/injection/pod.ts';
import { type Review, readAdmissionRequest, review } from '../../../src/sidecar/injector/review.ts';
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
