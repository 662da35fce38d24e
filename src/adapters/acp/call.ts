/**
 * The checkout call between the adapter, which checks it, and the backend service, which makes it.
 */

import type { IncomingMessage } from 'node:http';
import type { Cancellation } from '../../backend/exchange.ts';
import type { AttemptEnd, FinalAnswer, Work } from '../../checkouts/idempotency.ts';
import type { Operation } from '../../checkouts/operations.ts';
import type { AcpError } from './error.ts';

/** A call that passed every check before the claim (acp 13.1). */
export interface CheckoutCall {
  readonly operation: Operation;
  /** Decoded; undefined for create. */
  readonly sessionId: string | undefined;
  /** The configured id of the client, which the backend is sent. */
  readonly clientId: string;
  /** The id of the request, which the caller may have chosen. */
  readonly requestId: string;
  /** The gateway's own name for the call (call-id.ts). */
  readonly callId: string;
  /** The caller's `Request-Id` as it is echoed; undefined when there is none. */
  readonly callerRequestId: string | undefined;
  /** All headers of the caller; some of them go to the backend (acp 13.3). */
  readonly caller: IncomingMessage['headersDistinct'];
  /** As it came; undefined where there is none: reading, and a bare cancel. */
  readonly body: Uint8Array | undefined;
  readonly contentType: string | undefined;
  /** Milliseconds of the monotonic clock. */
  readonly startedAt: number;
}

/** The backend of the checkouts. */
export interface BackendService {
  /** A call begins. */
  open(call: CheckoutCall): BackendCall;
}

/** One call at the backend: its exchanges, its events and its receipt. */
export interface BackendCall extends Work<AcpError> {
  /**
   * The reading operation, which has no key and no claim. `signal`: aborted when the caller leaves.
   * Does not reject.
   */
  read(signal?: Cancellation): Promise<AttemptEnd<AcpError>>;
  /** To be called once the answer went out to its last byte. */
  delivered(answer: Delivered): void;
}

/** An answer for the caller, and where it comes from. */
export interface Delivered {
  readonly answer: FinalAnswer;
  readonly from: 'backend' | 'kept' | 'session';
}
