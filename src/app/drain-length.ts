/** The drain of a configuration, for `serve`, `acg validate` and what is read after them. */

import { longestTimeoutMs } from '../checkouts/settings.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { type DrainLength, drainLength } from '../sidecar/lifecycle.ts';

/** `propagationSeconds`: how long new calls are served after the drain began. */
export function drainLengthOf(
  { resources, protocols: { acp } }: Pick<GatewayConfig, 'resources' | 'protocols'>,
  propagationSeconds: number,
): DrainLength {
  const checkouts = acp.enabled ? longestTimeoutMs(acp.backend) : 0;
  return drainLength(propagationSeconds, Math.max(checkouts, ...resources.map(({ backend }) => backend.timeoutMs)));
}
