/** Finds the merchant's container in a pod and the port on which it serves. */

import { DEFAULT_CONTAINER, UPSTREAM_CONTAINER, UPSTREAM_PORT } from './names.ts';
import type { Container, Pod } from './pod.ts';
import { quoted, Refusal } from './refusal.ts';

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
  // An API server sends an empty name as none.
  const found = name === '' ? undefined : container.ports?.find((port) => port.name === name);
  if (found !== undefined) return found.containerPort;
  throw new Refusal(
    `${asked} names port ${quoted(name)}, which container ${container.name} does not declare; declare it or write the number`,
  );
}

function list(containers: readonly Container[]): string {
  return containers.map(({ name }) => name).join(', ');
}
