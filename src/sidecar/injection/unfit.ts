/** Finds what keeps a pod from taking the gateway, whatever its merchant: shape and conflicts. */

import { isDeepStrictEqual } from 'node:util';
import { additionFault, gatewayVolumes } from './gateway-container.ts';
import { AGENTS_PORT, GATEWAY_CONTAINER, MANAGEMENT_PORT } from './names.ts';
import type { InjectionOptions } from './options.ts';
import { type Pod, type PodSpec, Refusal } from './pod.ts';

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

/** What is wrong with the value at this path; undefined: nothing. */
type Check = (value: unknown, path: string) => string | undefined;

const is =
  (type: 'string' | 'number' | 'boolean' | 'object', right: string): Check =>
  (value, path) =>
    typeof value === type && value !== null && !Array.isArray(value) ? undefined : `${path} must be ${right}`;

const text = is('string', 'a text');
const whole: Check = (value, path) => (Number.isSafeInteger(value) ? undefined : `${path} must be a whole number`);
const flag = is('boolean', 'true or false');
const mapping = is('object', 'a mapping');
const numberOrText: Check = (value, path) =>
  typeof value === 'string' || Number.isSafeInteger(value) ? undefined : `${path} must be a number or a text`;

const list =
  (item: Check): Check =>
  (value, path) =>
    Array.isArray(value)
      ? firstFault(value.map((entry: unknown, index) => () => item(entry, `${path}[${index}]`)))
      : `${path} must be a list`;

const texts: Check = (value, path) =>
  mapping(value, path) ??
  firstFault(
    Object.entries(value as object).map(
      ([name, entry]) =>
        () =>
          text(entry, `${path}[${name.slice(0, 64)}]`),
    ),
  );

/** Members that are absent are right, unless they are required. */
const object =
  (members: Readonly<Record<string, Check>>, ...required: readonly string[]): Check =>
  (value, path) => {
    const wrong = mapping(value, path);
    if (wrong !== undefined) return wrong;
    const has = value as Readonly<Record<string, unknown>>;
    const absent = required.find((name) => has[name] === undefined);
    if (absent !== undefined) return `${path}.${absent} is missing`;
    return firstFault(
      Object.entries(members)
        .filter(([name]) => has[name] !== undefined)
        .map(
          ([name, check]) =>
            () =>
              check(has[name], `${path}.${name}`),
        ),
    );
  };

function firstFault(checks: readonly (() => string | undefined)[]): string | undefined {
  for (const check of checks) {
    const fault = check();
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const HTTP_GET = object(
  {
    path: text,
    port: numberOrText,
    host: text,
    scheme: text,
    httpHeaders: list(object({ name: text, value: text }, 'name')),
  },
  'port',
);
const PROBE = object({ httpGet: HTTP_GET, tcpSocket: mapping, grpc: mapping, exec: mapping });
const HOOK = object({ httpGet: HTTP_GET, tcpSocket: mapping, exec: mapping, sleep: object({ seconds: whole }) });
const QUANTITIES = object({ requests: mapping, limits: mapping });

const CONTAINER = object(
  {
    name: text,
    ports: list(object({ name: text, containerPort: whole, hostPort: whole }, 'containerPort')),
    env: list(object({ name: text, value: text }, 'name')),
    livenessProbe: PROBE,
    readinessProbe: PROBE,
    startupProbe: PROBE,
    lifecycle: object({ preStop: HOOK }),
    resources: QUANTITIES,
    volumeMounts: list(object({ name: text, mountPath: text }, 'mountPath')),
  },
  'name',
);

const POD = object(
  {
    metadata: object({ labels: texts, annotations: texts }),
    spec: object(
      {
        containers: list(CONTAINER),
        initContainers: list(CONTAINER),
        ephemeralContainers: list(mapping),
        volumes: list(
          object({ name: text, configMap: object({ name: text }), secret: object({ secretName: text }) }, 'name'),
        ),
        terminationGracePeriodSeconds: whole,
        restartPolicy: text,
        hostNetwork: flag,
        shareProcessNamespace: flag,
        os: object({ name: text }),
      },
      'containers',
    ),
  },
  'spec',
);

/** One sentence; undefined when every member that injection reads has its type. */
function shapeFault(pod: unknown): string | undefined {
  return POD(pod, 'pod');
}
