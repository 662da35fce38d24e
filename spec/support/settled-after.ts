/** The sample merchant with resources whose payment is settled after the backend answered. */

import { randomBytes } from 'node:crypto';
import { type ConfigObject, CURRENCY } from './config.ts';
import { soldInPlace } from './in-place.ts';

/** Keys that seal what a store holds; others in each run. */
export const SEALING: ConfigObject = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] };

/** Added to a resource: the money moves after its call, whatever its method. */
export const AFTER: ConfigObject = { pricing: { settle: 'after' }, backend: { safeUnpaid: true } };

/**
 * Overrides for `worldConfig`: every priced resource but those named is settled after its call, and
 * sold over every channel.
 */
export function settledAfter(...before: readonly string[]): ConfigObject {
  const sold = soldInPlace(CURRENCY);
  const resources = Object.entries(sold).map(([id, resource]) => [
    id,
    before.includes(id) ? resource : { ...resource, ...AFTER },
  ]);
  return {
    protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
    storage: { sealing: SEALING },
    resources: Object.fromEntries(resources),
  };
}
