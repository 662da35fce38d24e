import { uuidv7 } from './uuid.ts';

/**
 * The shape of a call id: `call_` + UUIDv7. It is the gateway's own name for one request: a caller chooses the request id, and others may
 * choose the same, so what is one call's is told by this one. Callers never see it.
 */
export const CALL_ID = /^call_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A fresh call id. */
export function newCallId(nowMs: number = Date.now()): string {
  return `call_${uuidv7(nowMs)}`;
}

/** When a call came in, Unix milliseconds of the gateway that took it. */
export function calledAtMs(callId: string): number {
  return Number.parseInt(`${callId.slice(5, 13)}${callId.slice(14, 18)}`, 16);
}
