import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Development, Production } from './rendered.ts';

for (const { overlay, rendered } of [
  { overlay: 'development', rendered: new Development() },
  { overlay: 'production', rendered: new Production() },
])
  describe(`the access to a pod of the ${overlay} overlay`, () => {
    it('is a Service on a port name that only the gateway declares', () => {
      const [port] = rendered.pick('Service', 'merchant-agents').spec?.ports ?? [];
      assert.equal(port?.targetPort, 'agent-http');
      const declaring = rendered.containers.filter(({ ports = [] }) => ports.some(({ name }) => name === 'agent-http'));
      assert.deepEqual(
        declaring.map(({ name }) => name),
        ['agent-commerce-gateway'],
      );
    });

    it('never exposes the management port by a Service', () => {
      for (const { spec } of rendered.objects.filter(({ kind }) => kind === 'Service')) {
        assert.ok(
          spec?.ports?.every(
            ({ port, targetPort }) => ![port, targetPort].some((p) => p === 8403 || p === 'agent-admin'),
          ),
        );
      }
    });

    it('selects the pods that the component labelled', () => {
      const labels = rendered.pick('Deployment', 'market-shop').spec?.template?.metadata.labels;
      assert.equal(labels?.['agent-commerce.dev/injected'], 'true');
      assert.deepEqual(rendered.pick('Service', 'merchant-agents').spec?.selector, {
        'agent-commerce.dev/injected': 'true',
      });
    });

    it('admits agents on 8402, monitoring on 8403 and no client to the backend, by number', () => {
      assert.deepEqual(rendered.pick('NetworkPolicy', 'merchant-agents').spec, {
        podSelector: { matchLabels: { 'agent-commerce.dev/injected': 'true' } },
        policyTypes: ['Ingress'],
        ingress: [
          { ports: [{ protocol: 'TCP', port: 8402 }] },
          {
            from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
            ports: [{ protocol: 'TCP', port: 8403 }],
          },
        ],
      });
    });

    it('lets a node be drained one pod at a time', () => {
      assert.deepEqual(rendered.pick('PodDisruptionBudget', 'merchant-agents').spec, {
        maxUnavailable: 1,
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
        selector: { matchLabels: { 'agent-commerce.dev/injected': 'true' } },
      });
    });

    it('has an account without a token', () => {
      assert.equal(rendered.pick('ServiceAccount', 'merchant-agents').automountServiceAccountToken, false);
    });
  });
