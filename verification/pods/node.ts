/**
 * The machine that pods are placed on: what images are, what ConfigMaps and Secrets hold, and how a
 * pod is rewritten so that several of them share one loopback.
 */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMap, isPair, isScalar, parseDocument, visit } from 'yaml';
import { freePorts } from '../../spec/support/ports.ts';
import type { Container, Hook, HttpGet, Pod, Probe } from '../../src/sidecar/injection/pod.ts';

/** How a container of an image is started. */
export interface Command {
  readonly args: readonly string[];
  /** Beside the container's own. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What Node is started with, for this container; `start`: 0 for the first time, 1 for the next. */
export type Image = (container: Container, start: number) => Command;

/** The text of files by object and key. */
type Objects = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface NodeParts {
  readonly images: Readonly<Record<string, Image>>;
  readonly configMaps: Objects;
  readonly secrets: Objects;
  /** Where volumes are written. */
  readonly directory: string;
}

/** A pod that can run here. */
export interface PlacedPod {
  readonly name: string;
  readonly pod: Pod;
  readonly images: NodeParts['images'];
  /** Where a port of the pod is on this machine. */
  port(ofPod: number): number;
}

type Ports = ReadonlyMap<number, number>;

const LOOPBACK_PORT = /\b127\.0\.0\.1:(\d+)/g;
const PROBES = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const;

/**
 * Gives each port of the pod one of this machine, and each volume a directory. Everything that
 * names a port or a mounted file says the new one; nothing else changes.
 */
export async function place(name: string, pod: Pod, node: NodeParts): Promise<PlacedPod> {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const named = [...new Set(containers.flatMap(portsOf))];
  const free = await freePorts(named.length);
  const ports: Ports = new Map(named.map((port, index) => [port, free[index] ?? 0]));
  const directories = await writeVolumes(join(node.directory, name), pod, node, ports);
  const placed = (container: Container): Container => placeContainer(container, ports, directories);
  const spec = {
    ...pod.spec,
    initContainers: (pod.spec.initContainers ?? []).map(placed),
    containers: pod.spec.containers.map(placed),
  };
  return {
    ...{ name, images: node.images, pod: { ...pod, spec } },
    port: (ofPod) => ports.get(ofPod) ?? fail(`no container of ${name} has the port ${ofPod}`),
  };
}

function fail(message: string): never {
  throw new Error(message);
}

/** Every number of a container that is a port of its pod. */
function portsOf(container: Container): readonly number[] {
  return [
    ...(container.ports ?? []).map(({ containerPort }) => containerPort),
    ...actionsOf(container).flatMap(({ port }) => (typeof port === 'number' ? [port] : [])),
    ...(container.env ?? []).flatMap(({ value = '' }) =>
      [...value.matchAll(LOOPBACK_PORT)].map(([, port]) => Number(port)),
    ),
  ];
}

function actionsOf(container: Container): readonly HttpGet[] {
  const hook = container.lifecycle?.preStop?.httpGet;
  return [
    ...PROBES.flatMap((probe) => container[probe]?.httpGet ?? []),
    ...PROBES.flatMap((probe) => (container[probe]?.tcpSocket as HttpGet | undefined) ?? []),
    ...(hook === undefined ? [] : [hook]),
  ];
}

function placeContainer(container: Container, ports: Ports, directories: ReadonlyMap<string, string>): Container {
  const at = (port: number | string): number => {
    const number = typeof port === 'number' ? port : container.ports?.find(({ name }) => name === port)?.containerPort;
    return ports.get(number ?? 0) ?? fail(`${container.name} has no port ${port}`);
  };
  const action = <Action extends { readonly port: number | string }>(one: Action): Action => ({
    ...one,
    port: at(one.port),
  });
  const handler = <Handler extends Probe | Hook>(one: Handler): Handler => ({
    ...one,
    ...(one.httpGet === undefined ? {} : { httpGet: action(one.httpGet) }),
    ...(one.tcpSocket === undefined ? {} : { tcpSocket: action(one.tcpSocket as HttpGet) }),
  });
  const probes = PROBES.flatMap((name) => {
    const probe = container[name];
    return probe === undefined ? [] : [[name, handler(probe)] as const];
  });
  const preStop = container.lifecycle?.preStop;
  const env = (container.env ?? []).map((variable) => ({
    ...variable,
    value: placedText(variable.value ?? '', container, ports, directories),
  }));
  return {
    ...container,
    ...Object.fromEntries(probes),
    ...(preStop === undefined ? {} : { lifecycle: { preStop: handler(preStop) } }),
    ports: (container.ports ?? []).map((port) => ({ ...port, containerPort: at(port.containerPort) })),
    env,
  };
}

/** The kubelet writes `$(` for `$$(`; paths below a mount lead to its directory. */
function placedText(
  value: string,
  { volumeMounts = [] }: Container,
  ports: Ports,
  directories: ReadonlyMap<string, string>,
): string {
  const mount = volumeMounts.find(({ mountPath }) => value.startsWith(`${mountPath}/`));
  const directory = directories.get(mount?.name ?? '');
  const path =
    mount === undefined || directory === undefined ? value : `${directory}${value.slice(mount.mountPath.length)}`;
  return path
    .replaceAll('$$(', '$(')
    .replace(LOOPBACK_PORT, (written, port) => `127.0.0.1:${ports.get(Number(port)) ?? written}`);
}

async function writeVolumes(
  home: string,
  { spec: { volumes = [] } }: Pod,
  { configMaps, secrets }: NodeParts,
  ports: Ports,
): Promise<ReadonlyMap<string, string>> {
  const directories = new Map<string, string>();
  for (const { name, configMap, secret } of volumes) {
    const directory = join(home, name);
    await mkdir(directory, { recursive: true });
    directories.set(name, directory);
    const files = { ...configMaps[configMap?.name ?? ''], ...secrets[secret?.secretName ?? ''] };
    for (const [file, text] of Object.entries(files))
      await writeFile(join(directory, file), file.endsWith('.yaml') ? placedDocument(text, ports) : text, {
        mode: 0o600,
      });
  }
  return directories;
}

/** A configuration whose listeners have the ports of this machine. */
function placedDocument(text: string, ports: Ports): string {
  const document = parseDocument(text);
  visit(document, {
    Pair(_key, pair) {
      if (!isPair(pair) || isMap(pair.value) || !isScalar(pair.key) || pair.key.value !== 'port') return;
      if (isScalar(pair.value)) pair.value.value = ports.get(Number(pair.value.value)) ?? pair.value.value;
    },
  });
  return document.toString();
}
