import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import jsonPatch from 'fast-json-patch';
import { injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { GATEWAY_CONTAINER } from '../../../src/sidecar/injection/names.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Container, HttpGet, Pod } from '../../../src/sidecar/injection/pod.ts';
import { ARBITRARY_MEDDLING, ARBITRARY_POD, meddled } from './arbitrary-pods.ts';

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;

const SEED = randomInt(2 ** 31);

/** Made once for all laws: making a pod takes longer than injecting it. */
const GENERATED = fc
  .sample(fc.tuple(ARBITRARY_POD, ARBITRARY_MEDDLING), { numRuns: 5_000, seed: SEED })
  .map(([made, meddling]) => {
    const [pod, before] = [copy(made), copy(made)];
    return { pod, before, meddling, injection: injectPod(frozen(pod), USUAL_OPTIONS) };
  });

const INJECTED = GENERATED.flatMap(({ before, meddling, injection }) =>
  injection.kind === 'injected' ? [{ before, meddling, after: injection.pod, patch: injection.patch }] : [],
);

/** Checks the law for each pod that took the gateway; a failure tells the pod. */
function holds(law: (injected: (typeof INJECTED)[number]) => void): void {
  for (const injected of INJECTED)
    try {
      law(injected);
    } catch (cause) {
      throw new Error(`seed ${SEED}: ${JSON.stringify(injected.before)}`, { cause });
    }
}

function injectedAgain(pod: Pod): Pod {
  const injection = injectPod(pod, USUAL_OPTIONS);
  assert.equal(injection.kind, 'injected', injection.kind === 'refused' ? injection.message : '');
  return injection.kind === 'injected' ? injection.pod : pod;
}

/** As it comes over the wire. */
function copy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value));
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) frozen(member);
  return value;
}

function gatewayOf(pod: Pod): Container | undefined {
  return pod.spec.initContainers?.find(({ name }) => name === GATEWAY_CONTAINER);
}

describe('injection of any pod', () => {
  it('takes and refuses pods', () => {
    assert.ok(INJECTED.length >= 2_000, `${INJECTED.length} took the gateway, seed ${SEED}`);
    assert.ok(INJECTED.length < GENERATED.length);
  });

  it('changes nothing the second time', () => {
    holds(({ after }) => {
      const again = injectPod(after, USUAL_OPTIONS);
      assert.deepEqual(again.kind === 'injected' ? [again.pod, again.patch] : again, [after, []]);
    });
  });

  it('changes nothing after others added to what it made', () => {
    holds(({ after, meddling }) => {
      const changed = meddled(after, meddling);
      assert.deepEqual(injectedAgain(changed), changed);
    });
  });

  it('is what its patch makes of the pod', () => {
    holds(({ before, after, patch }) => {
      assert.deepEqual(jsonPatch.applyPatch(copy(before), copy(patch), true).newDocument, copy(after));
    });
  });

  it('leaves the pod that it was given as it was', () => {
    for (const { pod, before } of GENERATED) assert.deepEqual(pod, before);
  });

  it('leaves room for the drain beside the grace period that the pod had', () => {
    holds(({ before, after }) => {
      const drain = Number(after.metadata?.annotations?.['agent-commerce.dev/drain-seconds']);
      assert.equal(after.spec.terminationGracePeriodSeconds, (before.spec.terminationGracePeriodSeconds ?? 30) + drain);
    });
  });

  it('touches no other container, and of the merchant only probes and preStop', () => {
    holds(({ before, after }) => {
      const changed = after.spec.containers.filter(
        (container, index) => !isDeepStrictEqual(container, before.spec.containers[index]),
      );
      assert.ok(changed.length <= 1);
      assert.deepEqual(
        after.spec.initContainers?.filter(({ name }) => name !== GATEWAY_CONTAINER),
        before.spec.initContainers ?? [],
      );
      assert.deepEqual(after.spec.containers.map(untouched), before.spec.containers.map(untouched));
    });
  });

  it('can be undone: probes, hook and grace come back, and are handed over again', () => {
    holds(({ before, after }) => {
      const { annotations = {} } = after.metadata ?? {};
      const kept = { ...annotations, 'agent-commerce.dev/rewrite-probes': 'false' };
      const restored = injectedAgain({ ...after, metadata: { ...after.metadata, annotations: kept } });
      const grace = gatewayOf(restored)?.env?.find(({ name }) => name === 'GATEWAY_MERCHANT_GRACE_SECONDS')?.value;
      assert.equal(grace, String(before.spec.terminationGracePeriodSeconds ?? 30));
      for (const [index, container] of restored.spec.containers.entries())
        for (const member of PROBES) {
          const [now, then] = [container[member], before.spec.containers[index]?.[member]];
          assert.deepEqual(request(now?.httpGet, container), request(then?.httpGet, container));
        }
      assert.deepEqual(injectedAgain({ ...restored, metadata: { ...restored.metadata, annotations } }), after);
    });
  });

  it('says only what Kubernetes shows', () => {
    for (const { injection } of GENERATED) {
      const said = injection.kind === 'injected' ? injection.warnings : [injection.message];
      for (const sentence of said) assert.ok(sentence.length > 0 && sentence.length <= 256, sentence);
    }
  });
});

/** What injection never changes of a container. */
function untouched(container: Container): object {
  const { lifecycle, ...others } = container;
  const { preStop, ...hooks } = lifecycle ?? {};
  const probes = PROBES.map((member) => {
    const { httpGet, ...kept } = container[member] ?? {};
    return { kept, asks: httpGet !== undefined };
  });
  return { ...others, ...Object.fromEntries(PROBES.map((member) => [member, undefined])), hooks, probes };
}

/** The request that the kubelet makes. */
function request(httpGet: HttpGet | undefined, { ports = [] }: Container): readonly unknown[] {
  if (httpGet === undefined) return [];
  const { path = '', port, scheme = 'HTTP', host = '', httpHeaders = [] } = httpGet;
  const number = ports.find(({ name }) => name === port)?.containerPort ?? port;
  const there = ['', 'localhost', '127.0.0.1'].includes(host) ? 'the merchant' : host;
  return [scheme, there, number, path.startsWith('/') ? path : `/${path}`, httpHeaders];
}
