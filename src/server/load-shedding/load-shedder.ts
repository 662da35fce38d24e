import type { IncomingMessage, ServerResponse } from 'node:http';
import http from 'node:http';
import { errorEnvelope, GatewayError } from '../../errors.ts';
import { MAX_BODY_BYTES } from '../http/body.ts';
import { ADAPTER_WITH_ROUTES, type IdPrefixes, requestIdFor } from '../http/request-id.ts';
import { rawPath } from '../http/target.ts';
import type { Turns } from './event-loop-lag.ts';
import type { OverloadDetector } from './overload-detector.ts';
import type { Slots } from './slots.ts';

/**
 * Why a call is not let in. `overload`: the process has more calls than it can compute;
 * `in_flight`: all its places are taken.
 */
export type ShedReason = 'overload' | 'in_flight';

/** What the decision is made from. */
interface SheddingParts {
  readonly places: Pick<Slots, 'free' | 'inFlight'>;
  readonly pressure: Pick<OverloadDetector, 'overloaded' | 'limit' | 'came'>;
  readonly turns: Pick<Turns, 'came'>;
}

/** Why the call that came must be refused now, or undefined. */
export type Shedding = () => ShedReason | undefined;

/**
 * Sheds what comes while as many calls are in flight as the loop can work on in short turns. What
 * is in flight counts, and not what came: a payment costs ten times what a free call does, in
 * pieces that lie in many turns, and whoever lets in by the turn meets those pieces again later.
 * All calls are refused alike: with any precedence for proofs, three times the payments that are
 * possible would be all that is served.
 *
 * An unpaid call of a priced resource ends in the turn it came in, so it never counts as in flight
 * and is refused only for others. Serving it costs 55 us and refusing it 25.
 */
export function createShedding({ places, pressure, turns }: SheddingParts): Shedding {
  return function shed() {
    turns.came();
    if (pressure.overloaded) {
      const refused = places.inFlight() >= pressure.limit;
      pressure.came(refused);
      if (refused) return 'overload';
    }
    return places.free() ? undefined : 'in_flight';
  };
}

/** When a caller may come again, seconds (contract 1.2). */
export const RETRY_AFTER_SECONDS = 1;

const { writeHead } = http.ServerResponse.prototype;
const PLACE_OF_ID = 'ID';
const [BEFORE_ID = '', AFTER_ID = ''] = JSON.stringify(
  errorEnvelope(new GatewayError('GATEWAY_BUSY'), PLACE_OF_ID),
).split(PLACE_OF_ID);

/**
 * Answers 503 GATEWAY_BUSY before anything is read or routed: bytes that are there already, and one
 * write. The connection is kept where the rest of the request can be skipped: its length is
 * declared and within what would be read anyway. Else, and when `last` says that the process
 * leaves, the answer goes the way of all others, which ends the connection in order.
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
    // Nobody will look at the body: without a reader it would be kept until the answer is out.
    req.resume();
  } else res.writeHead(503, head);
  res.end(body, 'latin1');
}

function canBeSkipped({ headers }: http.IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined || headers.expect !== undefined) return false;
  return Number(headers['content-length'] ?? 0) <= MAX_BODY_BYTES;
}

/** Answers a request that is not let in. False: it may come in. */
export type LoadShedder = (req: IncomingMessage, res: ServerResponse) => boolean;

/** What a load shedder is made of. */
interface LoadShedderParts {
  readonly shedding: Shedding;
  /** The mounts of the adapters that take messages, and what their request ids begin with. */
  readonly mounts: IdPrefixes;
  readonly draining: () => boolean;
  readonly onShed: (reason: ShedReason) => void;
}

/**
 * Stands before Express. Only calls are shed, and every call is a POST: probes, operators and
 * whoever looks up what is sold ask with GET. A refused call has cost the reading of its head and
 * the writing of its answer; neither its body nor its resource was looked at. The adapter with
 * routes of its own is asked later: it tells first who may not call at all, and says everything in
 * its own words.
 */
export function createLoadShedder({ shedding, mounts, draining, onShed }: LoadShedderParts): LoadShedder {
  return function door(req, res) {
    if (req.method !== 'POST') return false;
    const channel = mounts.get(rawPath(req.url ?? ''));
    if (channel === ADAPTER_WITH_ROUTES) return false;
    const reason = shedding();
    if (reason === undefined) return false;
    // Too many calls are no reason not to read one more: the middleware behind the adapter says it
    // in the words of its protocol.
    if (reason === 'in_flight' && channel !== undefined) return false;
    onShed(reason);
    answerBusy(req, res, requestIdFor(req, channel ?? 'req'), draining());
    return true;
  };
}
