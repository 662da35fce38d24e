import type { SealingKeys } from '../crypto/seal.ts';
import type { Operation } from './operations.ts';

/**
 * Who may call. A claim belongs to a client, not to a token: tokens are changed while claims are
 * open (acp 8 and 12.1).
 */
export interface AcpClient {
  readonly id: string;
  readonly tokens: readonly string[];
}

/** How repetitions are told from new calls, and what is kept for them. */
export interface IdempotencySettings {
  /** How long an answer is kept, milliseconds; at least 24 hours. */
  readonly retentionMs: number;
  /**
   * How long after its last call it is remembered whose a session is, milliseconds, beyond what is
   * remembered of its calls.
   */
  readonly sessionKeepMs: number;
  /**
   * Names and fingerprints are made with it. Changing it frees every open claim, and nobody knows
   * any more whose sessions are.
   */
  readonly secret: Uint8Array;
  /** The first seals, all of them open. */
  readonly keys: SealingKeys;
  /**
   * `derived-key`: the merchant is given a key that stays the same over all attempts, and an
   * operation whose end is unknown runs again with it. `read-back-only`: for a merchant that looks
   * at no key; for a while after a timeout only the session is read.
   */
  readonly merchant: 'derived-key' | 'read-back-only';
  /** Whether complete and cancel exclude one another on a session, whatever their keys. */
  readonly sessionLock: boolean;
}

/** The merchant's own checkout operations. */
export interface AcpBackend {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Sent with every call; a caller cannot overrule them. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * `path`: with the prefix of the base URL; it holds SESSION_PLACE wherever the operation has a
   * session.
   */
  readonly operations: Readonly<Record<Operation, { readonly path: string; readonly timeoutMs: number }>>;
  /**
   * Whether the merchant keeps sessions apart by `Agent-Commerce-Client` itself: then he is asked
   * for those that the store does not know.
   */
  readonly scopesByClient: boolean;
}

/** The optional members of the discovery document (acp 7). */
export interface AcpDiscoverySettings {
  readonly documentationUrl: string | undefined;
  readonly supportedCurrencies: readonly string[] | undefined;
  readonly supportedLocales: readonly string[] | undefined;
  readonly interventionTypes: readonly string[] | undefined;
}

/** `protocols.acp`, enabled (acp 13.7). */
export interface AcpSettings {
  readonly clients: readonly AcpClient[];
  readonly backend: AcpBackend;
  readonly idempotency: IdempotencySettings;
  readonly discovery: AcpDiscoverySettings;
  /** Whether keys still stand where they were before `storage.sealing.keys`. */
  readonly oldKeys: boolean;
  /** Most calls at the same time. */
  readonly maxInFlight: number;
  /** Whether request items may have a `quantity`, which the schema forbids and agents send. */
  readonly acceptLineItemQuantity: boolean;
  /** Whether an answer that contradicts itself is refused, and not only counted. */
  readonly strictSemantics: boolean;
  /**
   * Whether the merchant's `requires_3ds` is passed on by its code; otherwise it is
   * `invalid_request_body`, like every refusal of a body.
   */
  readonly authenticationErrors: boolean;
}

export type AcpConfig = { readonly mountPath: string } & (
  | { readonly enabled: false }
  | ({ readonly enabled: true } & AcpSettings)
);

/** Longest wait for the merchant of all operations, milliseconds. */
export function longestTimeoutMs({ operations }: Pick<AcpBackend, 'operations'>): number {
  return Math.max(...Object.values(operations).map(({ timeoutMs }) => timeoutMs));
}
