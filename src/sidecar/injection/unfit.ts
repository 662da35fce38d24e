/** Finds what keeps a pod from taking the gateway, whatever its merchant. */

import { isDeepStrictEqual } from 'node:util';
import { additionFault } from './additions.ts';
import { gatewayVolumes } from './gateway-container.ts';
import { AGENTS_PORT, GATEWAY_CONTAINER, MANAGEMENT_PORT } from './names.ts';
import type { InjectionOptions } from './options.ts';
import type { Pod, PodSpec } from './pod.ts';
import { shapeFault } from './pod-shape.ts';
import { Refusal } from './refusal.ts';

/** @throws Refusal */
export function refuseUnfit(pod: Pod, options: InjectionOptions): void {
  const fault = shapeFault(pod);
  if (fault !== undefined) throw new Refusal(fault);
  const { spec } = pod;
  if (spec.containers.length === 0) throw new Refusal('the pod has no containers; the gateway needs one to sell for');
  if (spec.hostNetwork === true)
    throw new Refusal("the pod has hostNetwork: its ports would be the node's; remove hostNetwork or the opt-in label");
  if (spec.os?.name === 'windows')
    throw new Refusal('the pod runs on Windows, for which the gateway has no image; remove the opt-in label');
  if (spec.ephemeralContainers !== undefined && spec.ephemeralContainers.length > 0)
    throw new Refusal('the pod has ephemeral containers: it runs already, and only a new pod takes the gateway');
  if (spec.containers.some(({ name }) => name === GATEWAY_CONTAINER))
    throw new Refusal(`a container is named ${GATEWAY_CONTAINER}, which is the gateway's name; rename it`);
  refusePorts(spec, options);
  refuseVolumes(spec, options);
  refuseAdditions(spec, options);
}

function refusePorts({ initContainers = [], containers }: PodSpec, { ports }: InjectionOptions): void {
  const numbers = [ports.agents, ports.management];
  for (const { name: container, ports: declared = [] } of [...initContainers, ...containers]) {
    if (container === GATEWAY_CONTAINER) continue;
    const number = declared.find(({ containerPort }) => numbers.includes(containerPort))?.containerPort;
    if (number !== undefined)
      throw new Refusal(
        `container ${container} declares port ${number}, on which the gateway listens; use another port`,
      );
    const name = declared.find((port) => port.name === AGENTS_PORT || port.name === MANAGEMENT_PORT)?.name;
    if (name !== undefined)
      throw new Refusal(
        `container ${container} names a port ${name}, which is a port of the gateway; use another name`,
      );
  }
}

function refuseVolumes({ initContainers = [], volumes = [] }: PodSpec, options: InjectionOptions): void {
  // What an earlier injection wrote may be replaced.
  if (initContainers.some(({ name }) => name === GATEWAY_CONTAINER)) return;
  for (const own of gatewayVolumes(options, volumes)) {
    const clash = volumes.find(({ name }) => name === own.name);
    if (clash !== undefined && !isDeepStrictEqual(clash, own))
      throw new Refusal(`the pod has a volume ${own.name} of its own, which is the gateway's name; rename it`);
  }
}

/** The image is right, and would run or read what is not the gateway's. */
function refuseAdditions({ initContainers = [] }: PodSpec, options: InjectionOptions): void {
  const gateway = initContainers.find(({ name }) => name === GATEWAY_CONTAINER);
  const fault = gateway === undefined ? undefined : additionFault(gateway, options);
  if (fault !== undefined) throw new Refusal(fault);
}
