/** The merchant's container in an injected pod: its probes and its preStop ask the gateway. */

import type { Placement } from './gateway-container.ts';
import { hookHeader, PROBES, RELEASE_PATH } from './names.ts';
import { handlerOf, type Originals } from './originals.ts';
import type { Container, Hook } from './pod.ts';

/** The container with its probes and preStop in the gateway's hands; everything else as it was. */
export function injectedMerchant(
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
