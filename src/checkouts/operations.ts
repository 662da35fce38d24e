/** The checkout service of ACP 2026-04-17, by the operation ids of its OpenAPI (acp 2). */
export const OPERATIONS = [
  'createCheckoutSession',
  'updateCheckoutSession',
  'getCheckoutSession',
  'completeCheckoutSession',
  'cancelCheckoutSession',
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** Every operation but the reading one is a POST, and is made at most once for a key. */
export type KeyedOperation = Exclude<Operation, 'getCheckoutSession'>;

/**
 * The one version that is served: it is the value of `API-Version`, of `protocol.version` and of
 * the adapter's `supportedSpec`.
 */
export const ACP_VERSION = '2026-04-17';

/** What an operation is, whatever the merchant calls its paths. */
interface OperationRule {
  readonly method: 'GET' | 'POST';
  /** Below the mount, and below the merchant's base URL unless configured otherwise. */
  readonly path: string;
  /** The one status that the merchant answers when it worked. */
  readonly success: 200 | 201;
  /** Longest wait for the merchant unless configured, milliseconds. */
  readonly timeoutMs: number;
}

/** Where a path template has the id of the session. */
export const SESSION_PLACE = '{checkout_session_id}';

const SESSION = `/checkout_sessions/${SESSION_PLACE}`;

export const OPERATION_RULES: Readonly<Record<Operation, OperationRule>> = {
  createCheckoutSession: { method: 'POST', path: '/checkout_sessions', success: 201, timeoutMs: 10_000 },
  updateCheckoutSession: { method: 'POST', path: SESSION, success: 200, timeoutMs: 10_000 },
  getCheckoutSession: { method: 'GET', path: SESSION, success: 200, timeoutMs: 10_000 },
  completeCheckoutSession: { method: 'POST', path: `${SESSION}/complete`, success: 200, timeoutMs: 25_000 },
  cancelCheckoutSession: { method: 'POST', path: `${SESSION}/cancel`, success: 200, timeoutMs: 10_000 },
};

/**
 * Largest document in either direction, bytes: what the merchant may answer, and what is kept for a
 * repetition.
 */
export const MAX_DOCUMENT_BYTES = 262_144;
