import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import type { Rate } from '../../server/rate-limit/token-buckets.ts';
import type { ConfigDocument } from '../document/document.ts';

const RATE = schema.properties.limits.properties.rate.properties;

/** `limits.rate`: undefined when it is not there, which switches the rate limit off. A burst is two seconds' worth unless it is said. */
export function deriveRate(limits: ConfigDocument['limits']): Rate | undefined {
  if (limits?.rate === undefined) return undefined;
  const { perSecond = RATE.perSecond.default, burst = 2 * perSecond } = limits.rate;
  return { perSecond, burst };
}
