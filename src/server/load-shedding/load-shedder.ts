/** The load shedder: answers calls with 503 before Express sees them, and decides which. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import http from 'node:http';
import { errorEnvelope, GatewayError } from '../../errors.ts';
import { MAX_BODY_BYTES } from '../http/body.ts';
import { ADAPTER_WITH_ROUTES, type IdPrefixes, requestIdFor } from '../http/request-id.ts';
import { rawPath } from '../http/target.ts';
import type { Turns } from './event-loop-lag.ts';
import type { OverloadDetector } from './overload-detector.ts';
import type { Slots } from './slots.ts';

/** Why a call is shed. `overload`: the process is behind its work; `in_flight`: no slot is free. */
export type ShedReason = 'overload' | 'in_flight';

interface SheddingParts {
  readonly slots: Pick<Slots, 'free' | 'inFlight'>;
  readonly overload: Pick<OverloadDetector, 'overloaded' | 'limit' | 'came'>;
  readonly turns: Pick<Turns, 'came'>;
}

/** Why the call that came must be refused now, or undefined. */
export type Shedding = () => ShedReason | undefined;

/**
 * Sheds calls while as many are in flight as the loop can work on in short turns. Calls in flight
 * count, not arrivals: a payment costs ten times what a free call does, in pieces over many turns,
 * and a limit on arrivals would let in work that delays later turns. All calls are refused alike:
 * if proofs went first, a load of three times the possible payments would leave no room for others.
 *
 * An unpaid call of a priced resource ends in the turn it came in, so it never counts as in flight
 * and is refused only because of others. Serving it costs 55 us and refusing it 25.
 */
export function createShedding({ slots, overload, turns }: SheddingParts): Shedding {
  return function shed() {
    turns.came();
    if (overload.overloaded) {
      const refused = slots.inFlight() >= overload.limit;
      overload.came(refused);
      if (refused) return 'overload';
    }
    return slots.free() ? undefined : 'in_flight';
  };
}

/** When a caller may try again, seconds (contract 1.2). */
export const RETRY_AFTER_SECONDS = 1;

const { writeHead } = http.ServerResponse.prototype;
const ID_MARK = 'ID';
const [BEFORE_ID = '', AFTER_ID = ''] = JSON.stringify(errorEnvelope(new GatewayError('GATEWAY_BUSY'), ID_MARK)).split(
  ID_MARK,
);

/**
 * Answers 503 GATEWAY_BUSY before anything is read or routed: prepared bytes, and one write. The
 * connection is kept where the rest of the request can be skipped: its length is declared and
 * within what would be read anyway. Otherwise, and when `last` says that the process drains, the
 * usual `writeHead` ends the connection in order.
 */
function answerBusy(req: http.IncomingMessage, res: http.ServerResponse, requestId: string, last: boolean): void {
  const body = `${BEFORE_ID}${requestId}${AFTER_ID}`;
  const head = [
    'content-type',
    'application/json; charset=utf-8',
    'content-length',
    String(body.length),
    'retry-after',
    String(RETRY_AFTER_SECONDS),
    'cache-control',
    'no-store',
    'x-request-id',
    requestId,
  ];
  if (!last && res.shouldKeepAlive && canBeSkipped(req)) {
    writeHead.call(res, 503, head);
    // The body is skipped: without a reader it would be kept until the answer is out.
    req.resume();
  } else res.writeHead(503, head);
  res.end(body, 'latin1');
}

function canBeSkipped({ headers }: http.IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined || headers.expect !== undefined) return false;
  return Number(headers['content-length'] ?? 0) <= MAX_BODY_BYTES;
}

/** Answers a request that is refused. False: it may go on. */
export type LoadShedder = (req: IncomingMessage, res: ServerResponse) => boolean;

interface LoadShedderParts {
  readonly shedding: Shedding;
  /** The mounts of the adapters that take messages, and what their request ids begin with. */
  readonly mounts: IdPrefixes;
  readonly draining: () => boolean;
  readonly onShed: (reason: ShedReason) => void;
  /** Tells calls at the backend's own address and requests that pass; undefined: there are none. */
  readonly routeOf?: ((req: IncomingMessage) => { readonly kind: string }) | undefined;
}

/**
 * Creates the load shedder. Only calls are shed, and every call is a POST, unless it comes to the
 * backend's own address: probes, operators and readers of public documents use GET. What passes to
 * the backend has an admission of its own. A refused call costs the reading of its head and the
 * writing of its answer; its body and its resource are not read. The adapter with routes of its own
 * sheds later, because it first refuses callers without a right, and in its own format.
 */
export function createLoadShedder({ shedding, mounts, draining, onShed, routeOf }: LoadShedderParts): LoadShedder {
  return function shedLoad(req, res) {
    const kind = routeOf?.(req).kind ?? 'own';
    if (kind !== 'in_place' && (kind !== 'own' || req.method !== 'POST')) return false;
    const channel = mounts.get(rawPath(req.url ?? ''));
    if (channel === ADAPTER_WITH_ROUTES) return false;
    const reason = shedding();
    if (reason === undefined) return false;
    // Without a free slot the message is still read: `limitConcurrency` then refuses the call in
    // the format of its protocol.
    if (reason === 'in_flight' && channel !== undefined) return false;
    onShed(reason);
    answerBusy(req, res, requestIdFor(req, channel ?? 'req'), draining());
    return true;
  };
}
