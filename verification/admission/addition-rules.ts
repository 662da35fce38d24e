/** Additions to the gateway's container in many spellings: the policy decides as injectPod. */

import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { GATEWAY_CONTAINER, GUARDED_PATHS } from '../../src/sidecar/injection/names.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import type { Container, Pod } from '../../src/sidecar/injection/pod.ts';
import { FREE } from './clusters.ts';
import type { Rule } from './rules.ts';

const PATHS = [
  ...GUARDED_PATHS.flatMap((path) => [path, `${path}/`, `${path}/below`, `${path}-beside`, path.slice(1)]),
  ...['/', '.', '..', '//', '/etc', '/run', '/var', '/var/run/secrets', '/x/../app', '/./app', '/x/..data', '/tmp'],
];
const VARIABLES = [
  ...['NODE_OPTIONS', 'MY_NODE_NAME', 'NODE', 'LD_PRELOAD', 'OLD_', 'SSL_CERT_FILE', 'OPENSSL_CONF', 'PATH', 'PATHS'],
  ...['HTTPS_PROXY', 'https_proxy', 'PROXY', '_PROXY', 'Https_Proxy', 'A_PROXY_B', 'REDIS_URL_FILE', 'TLS_FILE'],
];

/** One rule for each addition to an injected pod. */
export function additionRules(injected: Pod, options: InjectionOptions): readonly Rule[] {
  const added = (change: (gateway: Container) => Partial<Container>): Pod => ({
    ...injected,
    spec: {
      ...injected.spec,
      initContainers: (injected.spec.initContainers ?? []).map((each) =>
        each.name === GATEWAY_CONTAINER ? { ...each, ...change(each) } : each,
      ),
    },
  });
  const pods: readonly (readonly [string, Pod])[] = [
    ...PATHS.map((mountPath): readonly [string, Pod] => [
      `a mount at ${mountPath}`,
      added(({ volumeMounts = [] }) => ({ volumeMounts: [...volumeMounts, { name: 'x', mountPath }] })),
    ]),
    ...VARIABLES.map((name): readonly [string, Pod] => [
      `variable ${name}`,
      added(({ env = [] }) => ({ env: [...env, { name, value: 'x' }] })),
    ]),
  ];
  return pods.map(([name, object]): Rule => {
    const injection = injectPod(object, options);
    return {
      review: { name, cluster: 'guard', namespace: FREE, operation: 'CREATE', object },
      expected: injection.kind === 'refused' ? { words: injection.message } : { pod: object },
    };
  });
}
