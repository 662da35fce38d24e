/**
 * The five operations of the checkout service of ACP: their ids, paths, statuses and limits (acp
 * 2).
 */

/** By the operation ids of the OpenAPI of ACP 2026-04-17. */
export const OPERATIONS = [
  'createCheckoutSession',
  'updateCheckoutSession',
  'getCheckoutSession',
  'completeCheckoutSession',
  'cancelCheckoutSession',
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** Every operation but the reading one is a POST, and happens at most once for a key. */
export type KeyedOperation = Exclude<Operation, 'getCheckoutSession'>;

/** The one version served: `API-Version`, `protocol.version`, the adapter's `supportedSpec`. */
export const ACP_VERSION = '2026-04-17';

/** The path at which agents look for the service, at the root of the origin. */
export const DISCOVERY_PATH = '/.well-known/acp.json';

/** An operation, independent of the backend's own paths. */
interface OperationRule {
  readonly method: 'GET' | 'POST';
  /** Below the mount, and below the backend's base URL unless configured otherwise. */
  readonly path: string;
  /** The one status by which the backend reports success. */
  readonly success: 200 | 201;
  /** Longest wait for the backend unless configured, milliseconds. */
  readonly timeoutMs: number;
}

/** Stands for the id of the session in a path template. */
export const SESSION_PLACE = '{checkout_session_id}';

const SESSION = `/checkout_sessions/${SESSION_PLACE}`;

export const OPERATION_RULES: Readonly<Record<Operation, OperationRule>> = {
  createCheckoutSession: { method: 'POST', path: '/checkout_sessions', success: 201, timeoutMs: 10_000 },
  updateCheckoutSession: { method: 'POST', path: SESSION, success: 200, timeoutMs: 10_000 },
  getCheckoutSession: { method: 'GET', path: SESSION, success: 200, timeoutMs: 10_000 },
  completeCheckoutSession: { method: 'POST', path: `${SESSION}/complete`, success: 200, timeoutMs: 25_000 },
  cancelCheckoutSession: { method: 'POST', path: `${SESSION}/cancel`, success: 200, timeoutMs: 10_000 },
};

/** Largest answer of the backend, bytes, and so the largest that is kept for a repetition. */
export const MAX_DOCUMENT_BYTES = 262_144;
