import { createRemoteRail, type RemoteRailDeps } from '../../../src/payments/x402/remote-rail.ts';
import type { FacilitatorEndpoint } from '../../../src/payments/x402/settings.ts';
import { DEADLINES } from './hostile-answers.ts';

/** A rail over the facilitators at these URLs, in this order; with short deadlines and no chain unless given. */
export function remoteRail(
  [url = '', ...fallbacks]: readonly string[],
  deps: Partial<RemoteRailDeps> & Pick<RemoteRailDeps, 'network'>,
  auth: FacilitatorEndpoint['auth'] = { type: 'none' },
): ReturnType<typeof createRemoteRail> {
  const others = fallbacks.map((fallback) => ({ url: fallback, auth }));
  return createRemoteRail({
    facilitator: { mode: 'remote', url, auth, fallbacks: others },
    chain: undefined,
    deadlines: DEADLINES,
    ...deps,
  });
}
