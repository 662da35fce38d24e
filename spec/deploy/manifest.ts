/** The parts of Kubernetes objects that the deployment specs read. */

import { parseAllDocuments } from 'yaml';

interface HttpGet {
  readonly path: string;
  readonly port: number | string;
  readonly scheme?: string;
  readonly httpHeaders?: readonly { readonly name: string; readonly value: string }[];
}

interface Probe {
  readonly httpGet?: HttpGet;
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold?: number;
}

interface SecurityContext {
  readonly runAsNonRoot?: boolean;
  readonly runAsUser?: number;
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly capabilities?: { readonly drop?: readonly string[]; readonly add?: readonly string[] };
  readonly seccompProfile?: { readonly type: string };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[];
  readonly envFrom?: unknown;
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly lifecycle?: { readonly preStop?: { readonly httpGet?: HttpGet } };
  readonly resources?: Readonly<Record<'requests' | 'limits', Readonly<Record<string, string>> | undefined>>;
  readonly securityContext?: SecurityContext;
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
    readonly subPath?: string;
  }[];
}

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly secretName: string; readonly defaultMode?: number };
  readonly emptyDir?: unknown;
  readonly hostPath?: unknown;
}

export interface PodSpec {
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes?: readonly Volume[];
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
  readonly automountServiceAccountToken?: boolean;
  readonly spec?: {
    readonly selector?: unknown;
    readonly podSelector?: unknown;
    readonly ports?: readonly { readonly port: number; readonly targetPort?: number | string }[];
    readonly template?: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: PodSpec;
    };
  };
}

/** Reads a rendered YAML stream. Throws on a document that is no Kubernetes object. */
export function manifests(stream: string): readonly Manifest[] {
  return parseAllDocuments(stream).map((document) => {
    const object: unknown = document.toJS();
    if (typeof object !== 'object' || object === null || !('kind' in object) || !('metadata' in object)) {
      throw new Error(`not a Kubernetes object: ${String(document).slice(0, 80)}`);
    }
    return object as Manifest;
  });
}

/**
 * The one object of that kind and name (a generated name's hash suffix left out). Throws unless
 * there is exactly one.
 */
export function pick(objects: readonly Manifest[], kind: string, name: string): Manifest {
  const found = objects.filter(
    (object) => object.kind === kind && object.metadata.name.replace(/-[0-9a-z]{10}$/, '') === name,
  );
  const [only] = found;
  if (only === undefined || found.length > 1) throw new Error(`${found.length} objects ${kind}/${name}`);
  return only;
}

/** The pod of a workload. */
export function podOf(workload: Manifest): PodSpec {
  const pod = workload.spec?.template?.spec;
  if (pod === undefined) throw new Error(`${workload.kind}/${workload.metadata.name} has no pod`);
  return pod;
}

/** Every container of a pod in the order of its start. */
export function containersOf(pod: PodSpec): readonly Container[] {
  return [...(pod.initContainers ?? []), ...pod.containers];
}

/**
 * Paths that `left` has and `right` has not, or has with another value; members that only `right`
 * has are ignored.
 */
export function missingFrom(right: unknown, left: unknown, path = '$'): readonly string[] {
  if (typeof left !== 'object' || left === null) return left === right ? [] : [path];
  if (typeof right !== 'object' || right === null) return [path];
  const known = new Map<string, unknown>(Object.entries(right));
  return Object.entries(left).flatMap(([key, value]) => missingFrom(known.get(key), value, `${path}.${key}`));
}
