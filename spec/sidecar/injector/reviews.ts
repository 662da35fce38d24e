/** Admission reviews for specs: the one that an API server 1.36.2 sent, and others made of it. */

import type { Pod } from '../../../src/sidecar/injection/pod.ts';

/** The members of a request that specs change. */
interface RequestParts {
  readonly [member: string]: unknown;
}

const CORE_POD = { group: '', version: 'v1', kind: 'Pod' };
const CORE_PODS = { group: '', version: 'v1', resource: 'pods' };

/** The pod of the recorded review, with the defaults that the API server had filled in. */
const RECORDED: object = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name: 'w1', namespace: 'shop', labels: { 'agent-commerce.dev/inject': 'enabled', app: 'm' } },
  spec: {
    volumes: [
      {
        name: 'kube-api-access-4h7fr',
        projected: { defaultMode: 420, sources: [{ serviceAccountToken: { expirationSeconds: 3607, path: 'token' } }] },
      },
    ],
    initContainers: [
      {
        name: 'migrate',
        image: 'm:1',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        imagePullPolicy: 'IfNotPresent',
      },
    ],
    containers: [
      {
        name: 'merchant',
        image: 'm:1',
        ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
        readinessProbe: {
          httpGet: { path: '/healthz', port: 'http', scheme: 'HTTP' },
          timeoutSeconds: 1,
          periodSeconds: 10,
          successThreshold: 1,
          failureThreshold: 3,
        },
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
  },
};
export const RECORDED_POD = RECORDED as Pod;

/** The recorded review, with other members of its request, or another pod. */
export function reviewOf(parts: RequestParts = {}, pod: unknown = RECORDED_POD): object {
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: 'd11be401-59e6-4581-98b9-cae34377711d',
      kind: CORE_POD,
      resource: CORE_PODS,
      requestKind: CORE_POD,
      requestResource: CORE_PODS,
      name: 'w1',
      namespace: 'shop',
      operation: 'CREATE',
      userInfo: { username: 'admin', uid: 'admin', groups: ['system:masters', 'system:authenticated'] },
      object: pod,
      oldObject: null,
      dryRun: false,
      options: {
        kind: 'CreateOptions',
        apiVersion: 'meta.k8s.io/v1',
        fieldManager: 'kubectl-create',
        fieldValidation: 'Strict',
      },
      ...parts,
    },
  };
}

/** The same as the bytes that an API server sends. */
export function bytesOf(review: unknown): Buffer {
  return Buffer.from(JSON.stringify(review));
}
