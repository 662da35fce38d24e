import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Injection, injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Container, Pod } from '../../../src/sidecar/injection/pod.ts';

const SHOP: Container = { name: 'shop', image: 'shop:1', ports: [{ name: 'http', containerPort: 8080 }] };

function podOf(container: Partial<Container> = {}, spec: Partial<Pod['spec']> = {}, annotations = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'shop', annotations },
    spec: { containers: [{ ...SHOP, ...container }], ...spec },
  };
}

function injected(pod: Pod): Extract<Injection, { kind: 'injected' }> {
  const injection = injectPod(pod, USUAL_OPTIONS);
  assert.equal(injection.kind, 'injected', injection.kind === 'refused' ? injection.message : '');
  return injection as Extract<Injection, { kind: 'injected' }>;
}

/** The environment of the gateway as the kubelet passes it on. */
function environmentOf(pod: Pod): Readonly<Record<string, string>> {
  const gateway = pod.spec.initContainers?.find(({ name }) => name === 'agent-commerce-gateway');
  return Object.fromEntries((gateway?.env ?? []).map(({ name, value = '' }) => [name, value.replaceAll('$$', '$')]));
}

describe('injectPod', () => {
  it('appends a native sidecar and raises the grace period', () => {
    const { pod } = injected(podOf({}, { initContainers: [{ name: 'migrate' }], terminationGracePeriodSeconds: 60 }));
    assert.deepEqual(
      pod.spec.initContainers?.map(({ name, restartPolicy }) => [name, restartPolicy]),
      [
        ['migrate', undefined],
        ['agent-commerce-gateway', 'Always'],
      ],
    );
    assert.equal(pod.spec.terminationGracePeriodSeconds, 135);
  });

  it('hands the HTTP probes and the preStop of the merchant to the gateway', () => {
    const { pod } = injected(
      podOf({
        livenessProbe: { httpGet: { path: '/live?$(A)$$', port: 'http' }, periodSeconds: 3 },
        lifecycle: { preStop: { httpGet: { port: 9000, scheme: 'HTTPS', httpHeaders: [{ name: 'A', value: 'b' }] } } },
      }),
    );
    assert.deepEqual(pod.spec.containers[0]?.livenessProbe, {
      httpGet: { path: '/app-probe/liveness', port: 8403, scheme: 'HTTP' },
      periodSeconds: 3,
    });
    const environment = environmentOf(pod);
    assert.equal(environment['GATEWAY_APP_PROBE_LIVENESS'], 'http://127.0.0.1:8080/live?$(A)$$');
    assert.equal(environment['GATEWAY_APP_PRESTOP'], 'https://127.0.0.1:9000/');
    assert.equal(environment['GATEWAY_APP_PRESTOP_HEADERS'], 'A: b');
  });

  it('changes nothing the second time', () => {
    const { pod } = injected(podOf({ lifecycle: { preStop: { sleep: { seconds: 5 } } } }));
    const again = injected(pod);
    assert.deepEqual(again.pod, pod);
    assert.deepEqual(again.patch, []);
  });

  it('refuses a pod on the network of its node', () => {
    assert.deepEqual(injectPod(podOf({}, { hostNetwork: true }), USUAL_OPTIONS), {
      kind: 'refused',
      message: "the pod has hostNetwork: its ports would be the node's; remove hostNetwork or the opt-in label",
    });
  });
});
