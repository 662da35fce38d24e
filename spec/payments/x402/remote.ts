import { createRemoteRail, type RemoteRailDeps } from '../../../src/payments/x402/facilitator/remote-rail.ts';
import type { FacilitatorEndpoint } from '../../../src/payments/x402/wire/settings.ts';
import { json, DEADLINES as SHORT_DEADLINES } from './hostile-answers.ts';

/** Refuses a connection. */
export const UNREACHABLE = 'http://127.0.0.1:9';
/** For several facilitators: the share of each is still long enough to answer. */
export const DEADLINES = { verifyMs: 3_000, settleMs: 6_000, confirmMs: 2_000 };
const SPENT = 'invalid_exact_evm_nonce_already_used';
/** Two definite answers of a facilitator. */
export const refusal = json({ success: false, errorReason: 'insufficient_funds', transaction: '' });
export const spent = json({ success: false, errorReason: SPENT, transaction: '' });

/** A rail over these facilitators in order; with short deadlines and no chain unless given. */
export function remoteRail(
  [url = '', ...fallbacks]: readonly string[],
  deps: Partial<RemoteRailDeps> & Pick<RemoteRailDeps, 'network'>,
  auth: FacilitatorEndpoint['auth'] = { type: 'none' },
): ReturnType<typeof createRemoteRail> {
  const others = fallbacks.map((fallback) => ({ url: fallback, auth }));
  return createRemoteRail({
    facilitator: { mode: 'remote', url, auth, fallbacks: others },
    chain: undefined,
    deadlines: SHORT_DEADLINES,
    ...deps,
  });
}
