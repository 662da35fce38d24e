/** Puts the gateway into a pod: the one meaning that every way of injection has. */

import { variableText } from './env-value.ts';
import { gatewayContainer, gatewayVolumes, type Placement } from './gateway-container.ts';
import { type PatchOperation, patchBetween } from './json-patch.ts';
import { findMerchant, type Merchant } from './merchant.ts';
import { injectedMerchant } from './merchant-container.ts';
import * as names from './names.ts';
import type { InjectionOptions } from './options.ts';
import { readOriginals } from './originals.ts';
import type { Container, Pod, PodMetadata, Volume } from './pod.ts';
import { quoted, Refusal } from './refusal.ts';
import { refuseUnfit } from './unfit.ts';
import { warningsFor } from './warnings.ts';

const SECONDS = /^[1-9]\d{0,4}$/;

export type Injection =
  | {
      readonly kind: 'injected';
      readonly pod: Pod;
      /** What changes; empty when the pod is already as injection makes it. */
      readonly patch: readonly PatchOperation[];
      readonly warnings: readonly string[];
    }
  /** The message is one sentence that says what would be right. */
  | { readonly kind: 'refused'; readonly message: string };

/**
 * Injects the gateway as a native sidecar. Pure; what is injected already is recognised by the
 * name of its container and made anew, with what others added to it. `hookKey`: what the header of
 * the hooks says, unless an earlier injection decided it; undefined where all pods of a template
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
