/** What a pod's author should know although the gateway was injected. */

import { nearest } from '../../problems/nearest.ts';
import type { Placement } from './gateway-container.ts';
import type { Merchant } from './merchant.ts';
import * as names from './names.ts';
import type { InjectionOptions } from './options.ts';
import type { Pod } from './pod.ts';
import { quoted, sentence } from './refusal.ts';

/** Unknown annotations that are told one by one: each is compared with those that are known. */
const MAX_UNKNOWN = 8;

/** Each within the 256 characters that Kubernetes shows. */
export function warningsFor(
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
