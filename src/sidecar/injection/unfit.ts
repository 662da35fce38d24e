/** Refuses pods that cannot take the gateway because of their shape or of conflicts. */

import { isDeepStrictEqual } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { additionFault, gatewayVolumes } from './gateway-container.ts';
import { AGENTS_PORT, GATEWAY_CONTAINER, MANAGEMENT_PORT } from './names.ts';
import type { InjectionOptions } from './options.ts';
import { type Pod, type PodSpec, Refusal } from './pod.ts';

/** Longest part of a name that a sentence repeats, characters. */
const MAX_NAME = 64;

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
  // Volumes that an earlier injection wrote may be replaced.
  if (initContainers.some(({ name }) => name === GATEWAY_CONTAINER)) return;
  for (const own of gatewayVolumes(options, volumes)) {
    const clash = volumes.find(({ name }) => name === own.name);
    if (clash !== undefined && !isDeepStrictEqual(clash, own))
      throw new Refusal(`the pod has a volume ${own.name} of its own, which is the gateway's name; rename it`);
  }
}

/** Refuses additions with which the right image would run or read files of others. */
function refuseAdditions({ initContainers = [] }: PodSpec, options: InjectionOptions): void {
  const gateway = initContainers.find(({ name }) => name === GATEWAY_CONTAINER);
  const fault = gateway === undefined ? undefined : additionFault(gateway, options);
  if (fault !== undefined) throw new Refusal(fault);
}

/** A schema whose faults are told as `must be ${right}`. */
const is = (type: string | readonly string[], right: string, more: object = {}) => ({
  type,
  description: right,
  ...more,
});
const text = is('string', 'a text');
const whole = is('integer', 'a whole number', {
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
});
const flag = is('boolean', 'true or false');
const mapping = is('object', 'a mapping');
const list = (items: object) => is('array', 'a list', { items });
const texts = { ...mapping, additionalProperties: text };
/** Members that are absent are right, unless they are required. */
const object = (properties: object, ...required: readonly string[]) => ({ ...mapping, properties, required });

const HTTP_GET = object(
  {
    path: text,
    port: is(['string', 'integer'], 'a number or a text'),
    host: text,
    scheme: text,
    httpHeaders: list(object({ name: text, value: text }, 'name')),
  },
  'port',
);
const PROBE = object({ httpGet: HTTP_GET, tcpSocket: mapping, grpc: mapping, exec: mapping });
const HOOK = object({ httpGet: HTTP_GET, tcpSocket: mapping, exec: mapping, sleep: object({ seconds: whole }) });
const CONTAINER = object(
  {
    name: text,
    ports: list(object({ name: text, containerPort: whole, hostPort: whole }, 'containerPort')),
    env: list(object({ name: text, value: text }, 'name')),
    ...{ livenessProbe: PROBE, readinessProbe: PROBE, startupProbe: PROBE },
    lifecycle: object({ preStop: HOOK }),
    resources: object({ requests: mapping, limits: mapping }),
    volumeMounts: list(object({ name: text, mountPath: text }, 'mountPath')),
  },
  'name',
);
const SPEC = object(
  {
    ...{ containers: list(CONTAINER), initContainers: list(CONTAINER), ephemeralContainers: list(mapping) },
    volumes: list(
      object({ name: text, configMap: object({ name: text }), secret: object({ secretName: text }) }, 'name'),
    ),
    terminationGracePeriodSeconds: whole,
    restartPolicy: text,
    ...{ hostNetwork: flag, shareProcessNamespace: flag },
    os: object({ name: text }),
  },
  'containers',
);

/** Whether every member that injection reads has its type. */
const isPod = new Ajv2020({ verbose: true, strict: true, allowUnionTypes: true }).compile(
  object({ metadata: object({ labels: texts, annotations: texts }), spec: SPEC }, 'spec'),
);

/** A fault of the pod's shape in one sentence; undefined when there is none. */
function shapeFault(pod: unknown): string | undefined {
  if (isPod(pod)) return undefined;
  const [{ instancePath = '', keyword = '', params = {}, parentSchema = {} } = {}] = isPod.errors ?? [];
  const steps = instancePath.split('/').slice(1).map(unescaped);
  const path = steps.reduce((above, step, at) => {
    // Names of labels and annotations are the author's own.
    const isOwn = /^\d+$/.test(step) || steps[at - 1] === 'labels' || steps[at - 1] === 'annotations';
    return isOwn ? `${above}[${step.slice(0, MAX_NAME)}]` : `${above}.${step}`;
  }, 'pod');
  return keyword === 'required'
    ? `${path}.${params['missingProperty']} is missing`
    : `${path} must be ${parentSchema['description']}`;
}

/** A step of a JSON pointer (RFC 6901). */
function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}
