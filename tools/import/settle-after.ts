/** Proposes `settle: after` where answers can be kept sealed; the merchant alone writes it. */

import type { WrittenResource } from '../../src/config/document/document.ts';
import { isRepeatable } from '../../src/resources/resource.ts';

/** Tells whether a resource may be paid after its call; `pricing` also in the short form. */
export interface PricedResource {
  readonly backend: Pick<WrittenResource['backend'], 'method'>;
  readonly pricing: WrittenResource['pricing'] | string;
}

/** The ids of the resources that cost something and can be repeated, in their order. */
export function payableAfter(resources: Readonly<Record<string, PricedResource>>): readonly string[] {
  const isPayable = ({ backend, pricing }: PricedResource): boolean => {
    const kind = typeof pricing === 'string' ? pricing : pricing.type;
    return kind !== 'free' && isRepeatable({ method: backend.method, idempotent: false });
  };
  return Object.entries(resources).flatMap(([id, resource]) => (isPayable(resource) ? [id] : []));
}

/** The first of some ids, and how many more there are. */
export function firstOf(ids: readonly string[]): string {
  return `${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ` and ${ids.length - 5} more` : ''}`;
}
