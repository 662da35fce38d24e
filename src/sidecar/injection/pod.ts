/** The parts of a Kubernetes pod that injection reads or writes; everything else passes through. */

import { DEFAULT_CONTAINER, UPSTREAM_CONTAINER, UPSTREAM_PORT } from './names.ts';

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

/** Longest warning that Kubernetes shows, characters; refusals keep to it too. */
const MAX_SENTENCE = 256;
/** Longest part of a pod's own text that a sentence repeats, characters. */
const MAX_QUOTED = 48;

/** The pod cannot take the gateway; the message says what would be right. */
export class Refusal extends Error {
  constructor(message: string) {
    super(sentence(message));
    this.name = 'Refusal';
  }
}

/** The text within the limit of Kubernetes. */
export function sentence(text: string): string {
  return text.length <= MAX_SENTENCE ? text : `${text.slice(0, MAX_SENTENCE - 1)}…`;
}

/** A pod's own text inside a sentence. */
export function quoted(text: unknown): string {
  const whole = JSON.stringify(String(text));
  return whole.length <= MAX_QUOTED ? whole : `${whole.slice(0, MAX_QUOTED - 2)}…"`;
}

const PORT_NUMBER = /^[1-9]\d{0,4}$/;
const MAX_PORT = 65_535;

export interface Merchant {
  readonly index: number;
  readonly container: Container;
  /** Undefined when neither the container nor an annotation names one. */
  readonly port: number | undefined;
}

/**
 * The container that the annotation names, else kubectl's default container, else the first one.
 * @throws Refusal
 */
export function findMerchant(pod: Pod): Merchant {
  const { containers } = pod.spec;
  const annotations = pod.metadata?.annotations ?? {};
  const key = annotations[UPSTREAM_CONTAINER] === undefined ? DEFAULT_CONTAINER : UPSTREAM_CONTAINER;
  const wanted = annotations[key] ?? containers[0]?.name;
  const index = containers.findIndex(({ name }) => name === wanted);
  const container = containers[index];
  // The first container instead would be another one as soon as a mesh puts its own in front.
  if (container === undefined)
    throw new Refusal(
      `${key} names ${quoted(wanted)}, which is no container of the pod; it has ${list(containers)}, of which ${UPSTREAM_CONTAINER} names one`,
    );
  return { index, container, port: upstreamPort(container, annotations[UPSTREAM_PORT]) };
}

function upstreamPort(container: Container, wanted: string | undefined): number | undefined {
  if (wanted === undefined) return container.ports?.[0]?.containerPort;
  if (/^\d+$/.test(wanted)) {
    if (PORT_NUMBER.test(wanted) && Number(wanted) <= MAX_PORT) return Number(wanted);
    throw new Refusal(`${UPSTREAM_PORT} is ${quoted(wanted)}; a port is a number from 1 to ${MAX_PORT}`);
  }
  return namedPort(container, wanted, UPSTREAM_PORT);
}

/**
 * The number of a port that the container declares by name.
 * @throws Refusal
 */
export function namedPort(container: Container, name: string, asked: string): number {
  // An API server treats an empty port name as no name.
  const found = name === '' ? undefined : container.ports?.find((port) => port.name === name);
  if (found !== undefined) return found.containerPort;
  throw new Refusal(
    `${asked} names port ${quoted(name)}, which container ${container.name} does not declare; declare it or write the number`,
  );
}

function list(containers: readonly Container[]): string {
  return containers.map(({ name }) => name).join(', ');
}
