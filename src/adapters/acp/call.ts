import type { IncomingMessage } from 'node:http';
import type { AttemptEnd, FinalAnswer, Work } from '../../checkouts/idempotency.ts';
import type { Operation } from '../../checkouts/operations.ts';
import type { AcpError } from './error.ts';

/** A call that passed every check before the claim (acp 13.1). */
export interface CheckoutCall {
  readonly operation: Operation;
  /** Decoded; undefined for create. */
  readonly sessionId: string | undefined;
  /** Whose call it is: the configured id, which the merchant is told. */
  readonly clientId: string;
  /** The id of the request, which the caller may have chosen. */
  readonly requestId: string;
  /** Its own name for the call (call-id.ts). */
  readonly callId: string;
  /** The caller's `Request-Id` as it is echoed; undefined when there is none. */
  readonly callerRequestId: string | undefined;
  /** All that the caller sent, for those headers that the merchant is told (acp 13.3). */
  readonly caller: IncomingMessage['headersDistinct'];
  /** As it came; undefined where there is none: reading, and a bare cancel. */
  readonly body: Uint8Array | undefined;
  readonly contentType: string | undefined;
  /** Milliseconds of the monotonic clock. */
  readonly startedAt: number;
}

/** An answer that went out, and where it came from. */
export interface Delivered {
  readonly answer: FinalAnswer;
  readonly from: 'backend' | 'kept' | 'session';
}

/** One call on the merchant's side: its exchanges, its events and its receipt. */
export interface Visit extends Work<AcpError> {
  /**
   * The reading operation, which has no key and no claim. `signal`: aborted when the caller leaves.
   * Does not reject.
   */
  read(signal?: AbortSignal): Promise<AttemptEnd<AcpError>>;
  /** Told once the answer went out to its last byte. */
  delivered(answer: Delivered): void;
}

/** What stands between the adapter and the merchant. */
export interface MerchantSide {
  /** A call begins. */
  open(call: CheckoutCall): Visit;
}
