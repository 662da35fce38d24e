/** The load shedder: a request begins, waits, or gets 503, before Express sees it. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import http from 'node:http';
import { errorEnvelope, GatewayError, RETRY_AFTER_SECONDS } from '../../errors.ts';
import { acceptsPage } from '../http/accepts-page.ts';
import { MAX_BODY_BYTES } from '../http/body.ts';
import { PAGE_CLOSING, pageOpening } from '../http/page.ts';
import { ADAPTER_WITH_ROUTES, type IdPrefixes, requestIdFor } from '../http/request-id.ts';
import { NO_SNIFFING } from '../http/respond.ts';
import { rawPath } from '../http/target.ts';
import { type CallKind, type CallQueue, SMALL_BYTES, type WaitingCall } from './call-queue.ts';
import type { Turns } from './event-loop-lag.ts';
import type { ProofStanding } from './proof-standing.ts';
import type { Standing } from './waiting-lines.ts';

/** Why a call is shed. `overload`: the process is behind its work; `in_flight`: no slot is free. */
export type ShedReason = 'overload' | 'in_flight';

/** Why the call that came must be refused now, or undefined. */
export type Shedding = () => ShedReason | undefined;

/** Kubernetes takes a pod out of service that does not answer them. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/ready']);

const { writeHead } = http.ServerResponse.prototype;
const NO_SNIFF = Object.entries(NO_SNIFFING).flat();
const ID_MARK = 'ID';
const [BEFORE_ID = '', AFTER_ID = ''] = JSON.stringify(errorEnvelope(new GatewayError('GATEWAY_BUSY'), ID_MARK)).split(
  ID_MARK,
);

/** For people, who come to what passes. */
const BUSY_PAGE = `${pageOpening('Busy')}<h1>503</h1><p>The gateway is busy. Try again in a moment.</p>${PAGE_CLOSING}`;

/**
 * Answers 503 GATEWAY_BUSY before anything is read or routed: prepared bytes, and one write. The
 * connection is kept where the rest of the request can be skipped: its length is declared and
 * within what would be read anyway. Otherwise, and when `last` says that the process drains, the
 * usual `writeHead` ends the connection in order.
 */
function answerBusy(req: http.IncomingMessage, res: http.ServerResponse, requestId: string, last: boolean): void {
  const page = acceptsPage(req.headers.accept);
  const body = page ? BUSY_PAGE : `${BEFORE_ID}${requestId}${AFTER_ID}`;
  const head = [
    'content-type',
    page ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
    'content-length',
    String(body.length),
    'retry-after',
    String(RETRY_AFTER_SECONDS),
    'cache-control',
    'no-store',
    'x-request-id',
    requestId,
    ...NO_SNIFF,
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

/** Lets Express have a request that waited. */
type BeginRequest = (req: IncomingMessage, res: ServerResponse) => void;

/** What becomes of a request now; a call that waits begins or is refused later. */
export type Fate = 'goes_on' | 'waits' | 'refused';

/** Decides about a request. `begin`: lets it go on later. */
export type LoadShedder = (req: IncomingMessage, res: ServerResponse, begin: BeginRequest) => Fate;

interface LoadShedderParts {
  readonly queue: Pick<CallQueue, 'admits' | 'enter'>;
  readonly turns: Pick<Turns, 'refusing'>;
  /** The mounts of the adapters that take messages, and what their request ids begin with. */
  readonly mounts: IdPrefixes;
  readonly draining: () => boolean;
  /** Why a call has no room now. */
  readonly reason: () => ShedReason;
  readonly onShed: (reason: ShedReason) => void;
  /** Whether the head of a request carries a payment proof. */
  readonly carriesProof: (req: IncomingMessage) => boolean;
  readonly proofs: Pick<ProofStanding, 'networkOf' | 'of'>;
  /** Tells calls at the backend's own address and requests that pass; undefined: there are none. */
  readonly routeOf?: ((req: IncomingMessage) => { readonly kind: string }) | undefined;
}

/**
 * Creates the load shedder. Every request takes a turn, also what is answered at once, as a
 * document or a 404: a flood of such answers would take whole turns from paid calls. A call is a
 * POST, unless it comes to the backend's own address; all else takes no slot. A refused request
 * costs the reading of its head and the writing of its answer; its body and its resource are not
 * read. Probes are not refused, nor is what the adapter with routes of its own answers: it refuses
 * callers without a right first, and in its own format.
 */
export function createLoadShedder(parts: LoadShedderParts): LoadShedder {
  const { queue, mounts } = parts;
  return function shedLoad(req, res, begin) {
    const path = rawPath(req.url ?? '');
    const channel = mounts.get(path);
    const kind = kindOf(req, path, channel, parts);
    if (queue.admits(kind)) return 'goes_on';
    const asked = { req, res, kind, channel };
    if (queue.enter(new Waiting(asked, begin, parts))) return 'waits';
    return refuse(asked, parts) ? 'refused' : 'goes_on';
  };
}

function kindOf(
  req: IncomingMessage,
  path: string,
  channel: string | undefined,
  { routeOf, carriesProof }: LoadShedderParts,
): CallKind {
  if (PROBES.has(path)) return 'probe';
  const route = routeOf?.(req).kind ?? 'own';
  const isCall = route === 'in_place' || (route === 'own' && req.method === 'POST');
  if (!isCall || channel === ADAPTER_WITH_ROUTES) return 'other';
  return channel !== undefined ? 'message' : carriesProof(req) ? 'proof' : 'plain';
}

/** A request with what its head tells. */
interface Asked {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly kind: CallKind;
  readonly channel: string | undefined;
}

/**
 * Refuses a call. False: it goes on. Without a free slot a message is still read:
 * `limitConcurrency` then refuses the call in the format of its protocol.
 */
function refuse(
  { req, res, kind, channel }: Asked,
  { reason: reasonOf, onShed, draining, turns }: LoadShedderParts,
): boolean {
  if (kind === 'probe' || channel === ADAPTER_WITH_ROUTES) return false;
  const reason = kind === 'other' ? 'overload' : reasonOf();
  if (reason === 'in_flight' && channel !== undefined) return false;
  onShed(reason);
  turns.refusing(() => answerBusy(req, res, requestIdFor(req, channel ?? 'req'), draining()));
  return true;
}

/** A request that was not admitted. */
class Waiting implements WaitingCall {
  readonly kind: CallKind;
  readonly client: string;
  readonly standing: Standing;
  readonly large: boolean;
  readonly #asked: Asked;
  readonly #begin: BeginRequest;
  readonly #parts: LoadShedderParts;

  constructor(asked: Asked, begin: BeginRequest, parts: LoadShedderParts) {
    const { req, kind } = asked;
    this.#asked = asked;
    this.#begin = begin;
    this.#parts = parts;
    this.kind = kind;
    this.client = parts.proofs.networkOf(req);
    this.standing = parts.proofs.of(req, this.client);
    this.large = bytesOf(req) > SMALL_BYTES;
  }

  gone(): boolean {
    return this.#asked.req.socket.destroyed;
  }

  begin(): void {
    this.#begin(this.#asked.req, this.#asked.res);
  }

  refuse(): void {
    if (!refuse(this.#asked, this.#parts)) this.begin();
  }
}

/** The memory of a request that waits: its head, and its body as far as it came. */
function bytesOf({ headers, rawHeaders, url = '' }: IncomingMessage): number {
  if (headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY;
  let bytes = url.length + Number(headers['content-length'] ?? 0);
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
