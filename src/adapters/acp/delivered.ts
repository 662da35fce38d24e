import type { AttemptEnd, KeyedEnd } from '../../checkouts/idempotency.ts';
import type { Access } from '../../checkouts/sessions.ts';
import type { Delivered } from './call.ts';
import { AcpError, busy, retryAfter } from './error.ts';

/**
 * For whom a session does not exist it is missed in the same words as one that the merchant does
 * not have (contract 7.3).
 * @throws AcpError checkout_session_not_found, service_unavailable
 */
export function assertAccess(access: Access): void {
  if (access.kind === 'absent') throw new AcpError('checkout_session_not_found');
  if (access.kind === 'unavailable') throw busy({ cause: access.cause });
}

/**
 * What the caller is given, however the call ended (acp 12.4).
 * @throws AcpError for every end without an answer
 */
export function deliveredBy(end: KeyedEnd<AcpError> | AttemptEnd<AcpError>): Delivered {
  switch (end.kind) {
    case 'answered':
      return { answer: end.answer, from: end.from };
    case 'answer':
      return { answer: end.answer, from: 'backend' };
    case 'failed':
    case 'not_executed':
    case 'unknown':
      throw end.failure;
    case 'in_flight':
      throw new AcpError('idempotency_in_flight', { headers: retryAfter(end.retryAfterS) });
    case 'session_busy':
      throw new AcpError('checkout_session_conflict', {
        message: 'Another request on this checkout session is still running: repeat yours after Retry-After.',
        headers: retryAfter(end.retryAfterS),
      });
    case 'session_unknown':
      throw new AcpError('checkout_session_conflict', {
        message:
          'How an earlier request on this checkout session ended is not known, and the session cannot be read now: repeat yours after Retry-After.',
        headers: retryAfter(end.retryAfterS),
      });
    case 'conflict':
      throw new AcpError('idempotency_conflict');
    case 'foreign':
      throw new AcpError('processing_error', { cause: new Error("the merchant opened another client's session") });
    case 'unavailable':
      throw busy({ cause: end.cause });
  }
}
