/** The clusters of a run: what is applied to each, and the namespaces that all have. */

import type { Cluster } from './judge.ts';
import { type ClusterObject, documents, namespace, rendered } from './manifests.ts';

/** A namespace in which a pod may do without the gateway. */
export const FREE = 'shop';
/** One in which no pod may. */
export const ENFORCED = 'enforced-shop';

const NAMESPACES = [
  namespace(FREE),
  namespace(ENFORCED, { 'agent-commerce.dev/enforce': 'true' }),
  namespace('kube-system'),
];

/** A cluster to which these objects are applied. */
export function clusterOf(objects: readonly ClusterObject[], parts: Omit<Cluster, 'manifests'> = {}): Cluster {
  return { ...parts, manifests: documents([...NAMESPACES, ...objects]) };
}

/** The clusters that need nothing running. */
export function clustersOfPolicies(): Readonly<Record<string, Cluster>> {
  const policy = rendered('policy');
  return {
    // Only the defaults of the API server.
    plain: clusterOf([]),
    policy: clusterOf(policy),
    // The injection is gone, what refuses is there.
    guard: clusterOf(withoutInjection(policy)),
    'no parameters': clusterOf(policy.filter(({ kind }) => kind !== 'ConfigMap')),
    'incomplete parameters': clusterOf(policy.map(incomplete)),
    'another policy': clusterOf([...policy, ...ANOTHER_POLICY]),
  };
}

/** The objects that refuse, without those that inject. */
export function withoutInjection(objects: readonly ClusterObject[]): readonly ClusterObject[] {
  return objects.filter(({ kind }) => !kind.startsWith('MutatingAdmissionPolicy'));
}

function incomplete(object: ClusterObject): ClusterObject {
  if (object.kind !== 'ConfigMap') return object;
  const { image, ...data } = object['data'] as Readonly<Record<string, string>>;
  return { ...object, data: { ...data, managementPort: 'none' } };
}

const MUTATED = 'example-mesh';
/**
 * A mesh that adds its container in front, a probe of its own to the merchant and a variable to the
 * gateway. The order of policies is not defined, so it may be asked before or after the injection.
 */
const ANOTHER_POLICY = [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
    metadata: { name: MUTATED },
    spec: {
      failurePolicy: 'Fail',
      reinvocationPolicy: 'IfNeeded',
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      },
      mutations: [
        {
          patchType: 'JSONPatch',
          jsonPatch: {
            expression: `(object.spec.containers.exists(c, c.name == 'proxy') ? [] : [
              JSONPatch{op: 'add', path: '/spec/containers/0', value: Object.spec.containers{name: 'proxy', image: 'registry.example/proxy:1'}},
              JSONPatch{op: 'add', path: '/spec/containers/1/startupProbe', value: Object.spec.containers.startupProbe{
                httpGet: Object.spec.containers.startupProbe.httpGet{path: '/started', port: 8080}}}
            ]) + object.spec.?initContainers.orValue([]).transformList(i, c,
              c.name == 'agent-commerce-gateway' && !c.env.exists(e, e.name == 'MESH'),
              JSONPatch{op: 'add', path: '/spec/initContainers/' + string(i) + '/env/-', value: Object.spec.initContainers.env{name: 'MESH', value: 'on'}})`,
          },
        },
      ],
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicyBinding',
    metadata: { name: MUTATED },
    spec: { policyName: MUTATED },
  },
] as unknown as readonly ClusterObject[];
