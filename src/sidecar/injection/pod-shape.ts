/** Finds what has another type in a pod than Kubernetes gives it, before injection reads it. */

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
export function shapeFault(pod: unknown): string | undefined {
  return POD(pod, 'pod');
}
