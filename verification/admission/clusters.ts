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
  const policy = rendered('validating');
  return {
    // Only the defaults of the API server.
    plain: clusterOf([]),
    // The validating policy without the webhook.
    guard: clusterOf(policy),
    'no parameters': clusterOf(policy.filter(({ kind }) => kind !== 'ConfigMap')),
    'incomplete parameters': clusterOf(policy.map(incomplete)),
  };
}

function incomplete(object: ClusterObject): ClusterObject {
  if (object.kind !== 'ConfigMap') return object;
  const { image, ...data } = object['data'] as Readonly<Record<string, string>>;
  return { ...object, data: { ...data, managementPort: 'none' } };
}
