import type { AcpConfig } from '../checkouts/settings.ts';
import { STRONG_TOKEN_LENGTH } from './strong-token.ts';

/** Longest wait for the merchant that the usual shutdown outlasts, milliseconds: of its 30 s, 5 are for writing down what came. */
const USUAL_DRAIN_MS = 25_000;

/** Short tokens, which only a shop on this machine alone may have, and calls that a shutdown may cut off. */
export function checkoutWarnings(acp: AcpConfig): readonly string[] {
  if (!acp.enabled) return [];
  const short = acp.clients.some(({ tokens }) => tokens.some(({ length }) => length < STRONG_TOKEN_LENGTH));
  const longest = Math.max(...Object.values(acp.backend.operations).map(({ timeoutMs }) => timeoutMs));
  return [
    ...(short
      ? [`protocols.acp.auth: a token is shorter than ${STRONG_TOKEN_LENGTH} characters; use a long random one`]
      : []),
    ...(longest > USUAL_DRAIN_MS
      ? [
          `protocols.acp.backend.operations: a call may take ${longest / 1000} s and a shutdown 5 s longer; on Kubernetes raise terminationGracePeriodSeconds`,
        ]
      : []),
  ];
}
