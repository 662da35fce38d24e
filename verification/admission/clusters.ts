/** The clusters of a run: what is applied to each, and the namespaces of merchants in all of them. */

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
  const without = (...kinds: readonly string[]) => policy.filter(({ kind }) => !kinds.includes(kind));
  return {
    // Only the defaults of the API server.
    plain: clusterOf([]),
    policy: clusterOf(policy),
    // The injection is gone, what refuses is there.
    guard: clusterOf(without('MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding')),
    'no parameters': clusterOf(without('ConfigMap')),
    'incomplete parameters': clusterOf(policy.map(incomplete)),
    'another policy': clusterOf([...policy, ...ANOTHER_POLICY]),
  };
}

function incomplete(object: ClusterObject): ClusterObject {
  if (object.kind !== 'ConfigMap') return object;
  const { image, ...data } = object['data'] as Readonly<Record<string, string>>;
  return { ...object, data: { ...data, managementPort: 'none' } };
}

const MUTATED = 'example-mesh';
/** A mesh that adds its container in front, a probe of its own to the merchant and a variable to the gateway. */
const ANOTHER_POLICY = [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
    metadata: { name: MUTATED },
    spec: {
      failurePolicy: 'Fail',
      reinvocationPolicy: 'Never',
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      },
      mutations: [
        {
          patchType: 'JSONPatch',
          jsonPatch: {
            expression: `[
              JSONPatch{op: 'add', path: '/spec/containers/0', value: Object.spec.containers{name: 'proxy', image: 'registry.example/proxy:1'}},
              JSONPatch{op: 'add', path: '/spec/containers/1/startupProbe', value: Object.spec.containers.startupProbe{
                httpGet: Object.spec.containers.startupProbe.httpGet{path: '/started', port: 8080}}}
            ] + object.spec.?initContainers.orValue([]).transformList(i, c, c.name == 'agent-commerce-gateway',
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
