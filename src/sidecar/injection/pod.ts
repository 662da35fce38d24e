/** The parts of a Kubernetes pod that injection reads or writes; everything else passes through. */

interface HttpHeader {
  readonly name: string;
  readonly value?: string;
}

export interface HttpGet {
  readonly path?: string;
  readonly port: number | string;
  readonly host?: string;
  readonly scheme?: string;
  readonly httpHeaders?: readonly HttpHeader[];
}

/** A probe; its timings pass through. */
export interface Probe {
  readonly httpGet?: HttpGet;
  readonly tcpSocket?: object;
  readonly grpc?: object;
  readonly exec?: object;
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
}

export interface Hook {
  readonly httpGet?: HttpGet;
  readonly sleep?: { readonly seconds?: number };
  readonly exec?: object;
  readonly tcpSocket?: object;
}

interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
  readonly hostPort?: number;
  readonly protocol?: string;
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: object;
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly imagePullPolicy?: string;
  readonly restartPolicy?: string;
  readonly args?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly ports?: readonly ContainerPort[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: { readonly preStop?: Hook };
  readonly resources?: {
    readonly requests?: Readonly<Record<string, string | number>>;
    readonly limits?: Readonly<Record<string, string | number>>;
  };
  readonly resizePolicy?: readonly object[];
  readonly securityContext?: object;
  readonly terminationMessagePath?: string;
  readonly terminationMessagePolicy?: string;
  readonly volumeMounts?: readonly VolumeMount[];
}

export interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name?: string; readonly defaultMode?: number };
  readonly secret?: { readonly secretName?: string; readonly defaultMode?: number };
  readonly emptyDir?: { readonly sizeLimit?: string };
}

export interface PodSpec {
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly ephemeralContainers?: readonly object[];
  readonly volumes?: readonly Volume[];
  readonly terminationGracePeriodSeconds?: number;
  readonly restartPolicy?: string;
  readonly hostNetwork?: boolean;
  readonly shareProcessNamespace?: boolean;
  readonly os?: { readonly name?: string };
}

export interface PodMetadata {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A pod, or the pod template of a workload. */
export interface Pod {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: PodMetadata;
  readonly spec: PodSpec;
}
