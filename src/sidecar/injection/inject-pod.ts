/** Puts the gateway into a pod: every way of injection has this result. */

import { isDeepStrictEqual } from 'node:util';
import { nearest } from '../../problems/nearest.ts';
import {
  gatewayContainer,
  gatewayVolumes,
  handlerOf,
  type Originals,
  type Placement,
  readOriginals,
  variableText,
} from './gateway-container.ts';
import * as names from './names.ts';
import { hookHeader, PROBES, RELEASE_PATH } from './names.ts';
import type { InjectionOptions } from './options.ts';
import {
  type Container,
  findMerchant,
  type Hook,
  type Merchant,
  type Pod,
  type PodMetadata,
  quoted,
  Refusal,
  sentence,
  type Volume,
} from './pod.ts';
import { refuseUnfit } from './unfit.ts';

const SECONDS = /^[1-9]\d{0,4}$/;

export type Injection =
  | {
      readonly kind: 'injected';
      readonly pod: Pod;
      /** The changes; empty when the pod is already as injection makes it. */
      readonly patch: readonly PatchOperation[];
      readonly warnings: readonly string[];
    }
  /** The message is one sentence that says what would be right. */
  | { readonly kind: 'refused'; readonly message: string };

/**
 * Injects the gateway as a native sidecar. Pure. Injection recognises an earlier gateway by the
 * name of its container and makes it anew, with the additions of others. `hookKey`: the value of
 * the hooks' header, unless an earlier injection decided it; undefined where all pods of a template
 * are made from the result.
 */
export function injectPod(pod: Pod, options: InjectionOptions, hookKey?: string): Injection {
  try {
    const { injected, merchant, placement } = inject(pod, options, hookKey);
    const warnings = warningsFor(pod, { merchant, placement, options });
    return { kind: 'injected', pod: injected, patch: patchBetween(pod, injected), warnings };
  } catch (thrown) {
    if (thrown instanceof Refusal) return { kind: 'refused', message: thrown.message };
    throw thrown;
  }
}

function inject(
  pod: Pod,
  options: InjectionOptions,
  hookKey: string | undefined,
): { readonly injected: Pod; readonly merchant: Merchant; readonly placement: Placement } {
  refuseUnfit(pod, options);
  const { spec } = pod;
  const existing = spec.initContainers?.find(({ name }) => name === names.GATEWAY_CONTAINER);
  const merchant = findMerchant(pod);
  const { management } = options.ports;
  const placement: Placement = {
    merchantPort: merchant.port,
    originals: readOriginals(merchant.container, existing?.env ?? [], management),
    rewriteProbes: rewriteProbes(pod),
    drainSeconds: drainSeconds(pod, options),
    ownGrace: ownGrace(pod, existing),
    hookKey: variableText(existing?.env ?? [], names.ENV_HOOK_KEY) ?? hookKey,
  };
  const grace = placement.ownGrace + placement.drainSeconds;
  const injected: Pod = {
    ...pod,
    metadata: injectedMetadata(pod.metadata ?? {}, merchant.container.name, placement.drainSeconds, management),
    spec: {
      ...spec,
      initContainers: replacedOrAppended(spec.initContainers ?? [], [gatewayContainer(options, placement, existing)]),
      containers: spec.containers.map((container, index) =>
        index === merchant.index
          ? injectedMerchant(container, placement.originals, { ...placement, management })
          : container,
      ),
      volumes: replacedOrAppended<Volume>(spec.volumes ?? [], gatewayVolumes(options, spec.volumes ?? [])),
      terminationGracePeriodSeconds: Math.max(grace, spec.terminationGracePeriodSeconds ?? 0),
    },
  };
  return { injected, merchant, placement };
}

/** New entries stand in the place of those with their names, else at the end. */
function replacedOrAppended<T extends { readonly name: string }>(
  list: readonly T[],
  entries: readonly T[],
): readonly T[] {
  const kept = list.map((item) => entries.find(({ name }) => name === item.name) ?? item);
  return [...kept, ...entries.filter((entry) => !kept.includes(entry))];
}

function injectedMetadata(metadata: PodMetadata, merchant: string, drain: number, management: number): PodMetadata {
  const { labels, annotations = {} } = metadata;
  const exclusions = names.MESH_EXCLUSIONS.map((key) => [key, withPort(annotations[key], String(management))] as const);
  return {
    ...metadata,
    labels: { ...labels, [names.INJECTED_LABEL]: 'true' },
    annotations: {
      [names.DEFAULT_CONTAINER]: merchant,
      ...annotations,
      ...Object.fromEntries(exclusions),
      [names.DRAIN_SECONDS]: String(drain),
    },
  };
}

/** A list of ports with one more, unless it is there. */
function withPort(list: string | undefined, port: string): string {
  if (list === undefined || list.trim() === '') return port;
  return list.split(',').some((item) => item.trim() === port) ? list : `${list},${port}`;
}

function rewriteProbes(pod: Pod): boolean {
  const wanted = pod.metadata?.annotations?.[names.REWRITE_PROBES] ?? 'true';
  if (wanted === 'true' || wanted === 'false') return wanted === 'true';
  throw new Refusal(`${names.REWRITE_PROBES} is ${quoted(wanted)}; write "true" or "false"`);
}

function drainSeconds(pod: Pod, options: InjectionOptions): number {
  const wanted = pod.metadata?.annotations?.[names.DRAIN_SECONDS];
  if (wanted === undefined) return options.drainSeconds;
  if (SECONDS.test(wanted)) return Number(wanted);
  throw new Refusal(
    `${names.DRAIN_SECONDS} is ${quoted(wanted)}; write whole seconds, such as "${options.drainSeconds}"`,
  );
}

/** The grace period before injection, which an earlier one wrote down. */
function ownGrace({ spec }: Pod, existing: Container | undefined): number {
  const written = variableText(existing?.env ?? [], names.ENV_MERCHANT_GRACE);
  if (written !== undefined && /^\d{1,9}$/.test(written)) return Number(written);
  return spec.terminationGracePeriodSeconds ?? names.USUAL_GRACE_SECONDS;
}

/** The container with its probes and preStop in the gateway's hands; everything else as it was. */
function injectedMerchant(
  container: Container,
  originals: Originals,
  {
    rewriteProbes,
    hookKey,
    management,
  }: Pick<Placement, 'rewriteProbes' | 'hookKey'> & { readonly management: number },
): Container {
  const probes = PROBES.flatMap(({ member, path }) => {
    const original = originals.probes.get(member);
    if (original === undefined) return [];
    if (rewriteProbes) return [[member, { ...container[member], httpGet: { path, port: management, scheme: 'HTTP' } }]];
    const isRewritten = container[member]?.httpGet?.path === path && container[member]?.httpGet?.port === management;
    return isRewritten ? [[member, { ...container[member], httpGet: handlerOf(original) }]] : [];
  });
  return {
    ...container,
    ...Object.fromEntries(probes),
    lifecycle: { ...container.lifecycle, preStop: preStop(originals, management, hookKey) },
  };
}

function preStop({ preStop: own }: Originals, management: number, hookKey: string | undefined): Hook {
  if (own.kind === 'kept') return own.hook;
  return { httpGet: { path: RELEASE_PATH, port: management, scheme: 'HTTP', httpHeaders: [hookHeader(hookKey)] } };
}

/** Unknown annotations that are told one by one: each is compared with those that are known. */
const MAX_UNKNOWN = 8;

/** The warnings for a pod, each within the 256 characters that Kubernetes shows. */
function warningsFor(
  pod: Pod,
  {
    merchant,
    placement,
    options,
  }: { readonly merchant: Merchant; readonly placement: Placement; readonly options: InjectionOptions },
): readonly string[] {
  return [
    ...annotationWarnings(pod),
    ...merchantWarnings(merchant),
    ...drainWarnings(merchant, placement, options),
    ...podWarnings(pod, merchant),
  ].map(sentence);
}

function annotationWarnings(pod: Pod): readonly string[] {
  const unknown = Object.keys(pod.metadata?.annotations ?? {}).filter(
    (key) => key.startsWith(names.KEY_PREFIX) && !names.KNOWN_ANNOTATIONS.includes(key),
  );
  const more = unknown.length - MAX_UNKNOWN;
  return [
    ...unknown.slice(0, MAX_UNKNOWN).map(unknownWarning),
    ...(more > 0 ? [`${more} more annotations of ${names.KEY_PREFIX} are not read`] : []),
  ];
}

function unknownWarning(key: string): string {
  if (key === names.OPT_IN_LABEL || key === names.INJECTED_LABEL)
    return `${key} is a label; as an annotation it means nothing`;
  const near = nearest(
    key.slice(names.KEY_PREFIX.length),
    names.KNOWN_ANNOTATIONS.map((known) => known.slice(names.KEY_PREFIX.length)),
  );
  const meant =
    near === undefined ? `known are ${names.KNOWN_ANNOTATIONS.join(', ')}` : `did you mean ${names.KEY_PREFIX}${near}?`;
  return `annotation ${quoted(key)} is not read; ${meant}`;
}

function merchantWarnings({ container, port }: Merchant): readonly string[] {
  const { name, ports = [] } = container;
  const published = ports.find(({ hostPort }) => hostPort !== undefined && hostPort > 0);
  return [
    ...(port === undefined
      ? [
          `container ${name} declares no containerPort, so ${names.ENV_MERCHANT} is not set; declare it or write ${names.UPSTREAM_PORT}`,
        ]
      : []),
    ...(published === undefined
      ? []
      : [
          `container ${name} has hostPort ${published.hostPort}: callers of the node reach it past the gateway, unpaid`,
        ]),
    ...names.PROBES.flatMap(({ member }) => {
      const kind = container[member]?.tcpSocket !== undefined ? 'tcpSocket' : 'grpc';
      if (container[member]?.[kind] === undefined) return [];
      return [
        `the ${member} of container ${name} is a ${kind} probe, which goes to the pod's address: a merchant that listens on 127.0.0.1 fails it; use httpGet or exec`,
      ];
    }),
  ];
}

function drainWarnings(
  { container: { name, lifecycle } }: Merchant,
  { drainSeconds, originals }: Placement,
  options: InjectionOptions,
): readonly string[] {
  const kept = originals.preStop.kind === 'kept' ? originals.preStop.hook : undefined;
  return [
    ...(drainSeconds < options.drainSeconds
      ? [
          `${names.DRAIN_SECONDS} is ${drainSeconds}, less than the usual ${options.drainSeconds}: the gateway does not start when its calls may need longer; acg validate prints the right value`,
        ]
      : []),
    ...(kept === undefined
      ? []
      : [
          `container ${name} keeps its own preStop (${kept.exec === undefined ? 'httpGet to another host' : 'exec'}); it must last ${drainSeconds} s, or sales lose the merchant: use httpGet or sleep, which the gateway runs when all is sold`,
        ]),
    ...(lifecycle?.preStop?.tcpSocket === undefined
      ? []
      : [`the tcpSocket preStop of container ${name} was replaced: Kubernetes never ran it`]),
  ];
}

function podWarnings({ spec }: Pod, { container }: Merchant): readonly string[] {
  const { restartPolicy = 'Always', shareProcessNamespace } = spec;
  return [
    ...(restartPolicy === 'Always'
      ? []
      : [
          `restartPolicy is ${restartPolicy}: when container ${container.name} ends by itself no hook runs, and calls that still need it fail`,
        ]),
    ...(shareProcessNamespace === true
      ? ['shareProcessNamespace lets other containers of the pod read the secrets of the gateway through /proc']
      : []),
  ];
}

interface PatchOperation {
  readonly op: 'add';
  readonly path: string;
  readonly value: unknown;
}

/**
 * One `add` with the whole new value for each changed member of `metadata`, `spec` and each
 * container: an `add` replaces a member that is there, and needs only its parent to be there.
 */
function patchBetween(before: Pod, after: Pod): readonly PatchOperation[] {
  const { containers: containersBefore, ...specBefore } = before.spec;
  const { containers: containersAfter, ...specAfter } = after.spec;
  return [
    ...(before.metadata === undefined
      ? changes('', {}, after.metadata === undefined ? {} : { metadata: after.metadata })
      : changes('/metadata', before.metadata, after.metadata ?? {})),
    ...changes('/spec', specBefore, specAfter),
    ...containersAfter.flatMap((container, index) =>
      changes(`/spec/containers/${index}`, containersBefore[index] ?? {}, container),
    ),
  ];
}

function changes(path: string, before: object, after: object): readonly PatchOperation[] {
  const had = new Map<string, unknown>(Object.entries(before));
  return Object.entries(after)
    .filter(([name, value]) => !had.has(name) || !isDeepStrictEqual(had.get(name), value))
    .map(([name, value]) => ({ op: 'add', path: `${path}/${pointer(name)}`, value }));
}

/** A member's name inside a JSON pointer (RFC 6901). */
export function pointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
