/** The settings of the checkout service, as the configuration derives them from `protocols.acp`. */

import type { SealingKeys } from '../crypto/seal.ts';
import type { Operation } from './operations.ts';

/**
 * A caller. A claim belongs to a client, not to a token: tokens change while claims are open (acp 8
 * and 12.1).
 */
export interface AcpClient {
  readonly id: string;
  readonly tokens: readonly string[];
}

/** The rules by which the gateway recognises repeated calls and keeps their answers. */
export interface IdempotencySettings {
  /** How long an answer is kept, milliseconds; at least 24 hours. */
  readonly retentionMs: number;
  /**
   * How long the owner of a session is remembered beyond the records of its calls, milliseconds.
   */
  readonly sessionKeepMs: number;
  /** HMAC key of names and fingerprints. A new one frees every open claim and loses all owners. */
  readonly secret: Uint8Array;
  /** The first seals, all of them open. */
  readonly keys: SealingKeys;
  /**
   * `derived-key`: the backend gets one key for all attempts, and an operation whose end is unknown
   * runs again with it. `read-back-only`: for a backend that looks at no key; for a while after a
   * timeout only the session is read.
   */
  readonly merchant: 'derived-key' | 'read-back-only';
  /** Whether complete and cancel exclude one another on a session under any keys. */
  readonly sessionLock: boolean;
}

/** The backend's own checkout operations. */
export interface AcpBackend {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Sent with every call; a caller cannot replace them. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * `path`: with the prefix of the base URL, and SESSION_PLACE where the operation has a session.
   */
  readonly operations: Readonly<Record<Operation, { readonly path: string; readonly timeoutMs: number }>>;
  /**
   * Whether the backend itself tells sessions apart by `Agent-Commerce-Client`: then it is asked
   * for those that the store does not know.
   */
  readonly scopesByClient: boolean;
}

/** The optional members of the discovery document (acp 7). */
export interface AcpDiscoverySettings {
  readonly documentationUrl?: string | undefined;
  readonly supportedCurrencies?: readonly string[] | undefined;
  readonly supportedLocales?: readonly string[] | undefined;
  readonly interventionTypes?: readonly string[] | undefined;
}

/** `protocols.acp`, enabled (acp 13.7). */
export interface AcpSettings {
  readonly clients: readonly AcpClient[];
  readonly backend: AcpBackend;
  readonly idempotency: IdempotencySettings;
  readonly discovery: AcpDiscoverySettings;
  /** Most calls at the same time. */
  readonly maxInFlight: number;
  /** Whether request items may have a `quantity`, which the schema forbids and agents send. */
  readonly acceptLineItemQuantity: boolean;
  /** Whether an answer that contradicts itself is refused, not only counted. */
  readonly strictSemantics: boolean;
  /**
   * Whether the backend's `requires_3ds` is passed on by its code; otherwise it becomes
   * `invalid_request_body`, like every refusal of a body.
   */
  readonly authenticationErrors: boolean;
}

export type AcpConfig = { readonly mountPath: string } & (
  | { readonly enabled: false }
  | ({ readonly enabled: true } & AcpSettings)
);

/** Longest wait for the backend of all operations, milliseconds. */
export function longestTimeoutMs({ operations }: Pick<AcpBackend, 'operations'>): number {
  return Math.max(...Object.values(operations).map(({ timeoutMs }) => timeoutMs));
}

/** How long a command of the store may take, milliseconds; both adapters of stores keep to it. */
export const STORE_COMMAND_TIMEOUT_MS = 500;
/**
 * For the process itself, milliseconds: from the store's answer to the backend's socket, and back.
 */
const SLACK_MS = 2_000;
/**
 * How long an unknown end is remembered at least, milliseconds: agents may come back until then.
 */
const SHORTEST_UNKNOWN_KEEP_MS = 7 * 24 * 60 * 60 * 1_000;
/** How long after the longest timeout the backend may still work on a call, milliseconds. */
const SETTLE_MARGIN_MS = 30_000;
const MS_PER_S = 1_000;

/**
 * The lease of an attempt, milliseconds: the backend's time and the commands around it (acp 12.4).
 */
export function leaseFor(timeoutMs: number): number {
  return timeoutMs + 2 * STORE_COMMAND_TIMEOUT_MS + SLACK_MS;
}

/** How long an unknown end is remembered, milliseconds: never shorter than an answer would be. */
export function unknownKeepMs(retentionMs: number): number {
  return Math.max(retentionMs, SHORTEST_UNKNOWN_KEEP_MS);
}

/**
 * How long after the begin of an attempt with an unknown end its effect may still come,
 * milliseconds: at a backend that looks at no key the operation does not run again until then (acp
 * 12.5).
 */
export function settleWindowMs(longestTimeoutMs: number): number {
  return longestTimeoutMs + SETTLE_MARGIN_MS;
}

/**
 * When to ask again about an attempt that runs, whole seconds, at least 1: as long as it has run
 * already (`ageMs`), like a back-off, but no longer than it may still take (`leftMs`).
 */
export function retryAfterS(ageMs: number, leftMs: number): number {
  return Math.max(1, Math.min(Math.ceil(ageMs / MS_PER_S), Math.ceil(leftMs / MS_PER_S)));
}
