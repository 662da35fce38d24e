/** What the objects beside a workload say about its gateway: needs more than the pod. */

import { parse } from 'yaml';
import { variableText } from './gateway-container.ts';
import { findMerchant } from './merchant.ts';
import { CONFIG_KEY, CONFIG_VOLUME, ENV_MERCHANT, GATEWAY_CONTAINER, SECRET_VOLUME, UPSTREAM_PORT } from './names.ts';
import type { InjectionOptions } from './options.ts';
import type { Pod } from './pod.ts';
import { quoted, sentence } from './refusal.ts';
import { isMembers, type Manifest, type Workload } from './workloads.ts';

/** Makers of Secrets whose values stand elsewhere. */
const SECRET_KINDS: ReadonlySet<string> = new Set(['Secret', 'SealedSecret', 'ExternalSecret']);

/** `pod`: the injected one. Each warning fits where Kubernetes shows it. */
export function workloadWarnings(
  workload: Workload,
  pod: Pod,
  objects: readonly Manifest[],
  options: InjectionOptions,
): readonly string[] {
  const beside = objects.filter((object) => namespaceOf(object) === workload.namespace);
  const config = volumeSource(pod, CONFIG_VOLUME) ?? options.configMap;
  const secret = volumeSource(pod, SECRET_VOLUME) ?? options.secret;
  return [
    ...publishedPorts(pod, beside),
    ...absent('ConfigMap', config, [CONFIG_KEY], beside),
    ...absent('Secret', secret, options.secretKeys, beside),
    ...baseUrl(pod, config, beside),
    ...sharedFile(workload, config, beside),
  ].map(sentence);
}

function volumeSource(pod: Pod, volume: string): string | undefined {
  const found = pod.spec.volumes?.find(({ name }) => name === volume);
  return found?.configMap?.name ?? found?.secret?.secretName;
}

/** Services that lead past the gateway. */
function publishedPorts(pod: Pod, beside: readonly Manifest[]): readonly string[] {
  const { container, port } = findMerchant(pod);
  const own = new Set<unknown>([port, ...(container.ports ?? []).flatMap((each) => [each.containerPort, each.name])]);
  own.delete(undefined);
  return beside
    .filter(({ kind, spec }) => kind === 'Service' && isMembers(spec) && selects(spec['selector'], pod))
    .flatMap((service) => {
      const ports: unknown = member(service, 'spec', 'ports');
      const published = (Array.isArray(ports) ? ports : []).map((each) => each?.targetPort ?? each?.port);
      const past = published.find((each) => own.has(each));
      if (past === undefined) return [];
      return [
        `Service ${nameOf(service)} publishes port ${quoted(past)} of container ${container.name} past the gateway: its callers do not pay; write targetPort: agent-http`,
      ];
    });
}

function selects(selector: unknown, pod: Pod): boolean {
  if (!isMembers(selector) || Object.keys(selector).length === 0) return false;
  return Object.entries(selector).every(([key, value]) => pod.metadata?.labels?.[key] === value);
}

/** Says nothing where the input holds no object of that kind: they are elsewhere. */
function absent(
  kind: 'ConfigMap' | 'Secret',
  name: string,
  keys: readonly string[],
  beside: readonly Manifest[],
): readonly string[] {
  const kinds = kind === 'Secret' ? SECRET_KINDS : new Set([kind]);
  const known = beside.filter((object) => kinds.has(String(object['kind'])));
  if (known.length === 0) return [];
  const found = known.find((object) => nameOf(object) === name);
  if (found === undefined) return [`${kind} ${name} is not in the input; the gateway does not start without it`];
  if (found['kind'] !== kind) return [];
  const has = { ...membersOf(found['data']), ...membersOf(found['stringData']), ...membersOf(found['binaryData']) };
  const missing = keys.filter((key) => has[key] === undefined);
  return missing.length === 0 ? [] : [`${kind} ${name} has no key ${missing.join(', ')}, which the gateway reads`];
}

/** The variable of the pod replaces the address of the configuration, with its path. */
function baseUrl(pod: Pod, config: string, beside: readonly Manifest[]): readonly string[] {
  const gateway = pod.spec.initContainers?.find(({ name }) => name === GATEWAY_CONTAINER);
  const value = variableText(gateway?.env ?? [], ENV_MERCHANT);
  const said = member(configuration(config, beside), 'backend', 'baseUrl');
  if (typeof said !== 'string' || value === undefined) return [];
  if ([`\${${ENV_MERCHANT}}`, value, `${value}/`].includes(said)) return [];
  return [
    `ConfigMap ${config} says backend.baseUrl ${quoted(said)}, and the pod sets ${ENV_MERCHANT}, which replaces all of it with ${value}; another port is for ${UPSTREAM_PORT}`,
  ];
}

/** A SQLite file belongs to one pod: another one does not see which proofs are spent. */
function sharedFile(workload: Workload, config: string, beside: readonly Manifest[]): readonly string[] {
  if (member(configuration(config, beside), 'storage', 'sqlite') === undefined) return [];
  const why = severalPods(workload, beside);
  return why === undefined
    ? []
    : [
        `${why}, and ConfigMap ${config} keeps payments in a SQLite file of each pod: a proof could be spent in each; use storage.redis`,
      ];
}

function severalPods({ kind, name, object }: Workload, beside: readonly Manifest[]): string | undefined {
  if (kind === 'DaemonSet') return `DaemonSet ${name} runs a pod on each node`;
  const replicas = member(object, 'spec', 'replicas') ?? member(object, 'spec', 'parallelism');
  if (Number(replicas) > 1) return `${kind} ${name} has ${replicas} replicas`;
  const scaler = beside.find(
    (other) =>
      other['kind'] === 'HorizontalPodAutoscaler' &&
      member(other, 'spec', 'scaleTargetRef', 'kind') === kind &&
      member(other, 'spec', 'scaleTargetRef', 'name') === name &&
      Number(member(other, 'spec', 'maxReplicas')) > 1,
  );
  return scaler === undefined ? undefined : `HorizontalPodAutoscaler ${nameOf(scaler)} may run several pods`;
}

/** Undefined: it is not in the input, or is no YAML. */
function configuration(config: string, beside: readonly Manifest[]): unknown {
  const found = beside.find((object) => object['kind'] === 'ConfigMap' && nameOf(object) === config);
  const text = member(found, 'data', CONFIG_KEY);
  if (typeof text !== 'string') return undefined;
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function member(object: unknown, ...path: readonly string[]): unknown {
  return path.reduce((inner, name) => membersOf(inner)[name], object);
}

function membersOf(value: unknown): Manifest {
  return isMembers(value) ? value : {};
}

function nameOf(object: Manifest): string {
  return String(member(object, 'metadata', 'name') ?? '');
}

function namespaceOf(object: Manifest): string | undefined {
  const namespace = member(object, 'metadata', 'namespace');
  return typeof namespace === 'string' ? namespace : undefined;
}
