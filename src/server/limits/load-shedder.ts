/** The load shedder: a request begins, waits, or gets 503, before Express sees it. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import http from 'node:http';
import type { Socket } from 'node:net';
import { errorEnvelope, GatewayError, RETRY_AFTER_SECONDS } from '../../errors.ts';
import { RecentMap } from '../../time/recent-map.ts';
import { ADAPTER_WITH_ROUTES, type IdPrefixes, requestIdFor } from '../http/access-record.ts';
import { INVOKE_PATH, MAX_BODY_BYTES, rawPath } from '../http/request.ts';
import { acceptsPage, NO_SNIFFING, PAGE_CLOSING, pageOpening } from '../http/respond.ts';
import type { ClientOf } from './client-address.ts';
import {
  type CallKind,
  CallLimit,
  JUDGE_MS,
  LEAST_IN_FLIGHT,
  type Slots,
  SMALL_BYTES,
  type Standing,
} from './load-shedding.ts';

/** Why a call is shed. `overload`: the process is behind its work; `in_flight`: no slot is free. */
type ShedReason = 'overload' | 'in_flight';

/** Why the call that came must be refused now, or undefined. */
export type Shedding = () => ShedReason | undefined;

/** Between two reports of shed calls, milliseconds: one for each call would cost more than it. */
const REPORT_MS = 1_000;
/**
 * No call takes longer, milliseconds: 120 s of a backend (contract 3), 60 s of its settlement, and
 * some for its waits.
 */
const LONGEST_CALL_MS = 240_000;

/** Kubernetes takes a pod that does not answer these probes out of service. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/ready']);

const { writeHead } = http.ServerResponse.prototype;
const NO_SNIFF = Object.entries(NO_SNIFFING).flat();
const ID_MARK = 'ID';
const [BEFORE_ID = '', AFTER_ID = ''] = JSON.stringify(errorEnvelope(new GatewayError('GATEWAY_BUSY'), ID_MARK)).split(
  ID_MARK,
);

/** For people, who open pages that pass to the backend, and addresses of the gateway. */
const BUSY_PAGE = `${pageOpening('Busy')}<h1>503</h1><p>The gateway is busy. Try again in a moment.</p>${PAGE_CLOSING}`;

/**
 * Answers 503 GATEWAY_BUSY before anything is read or routed: prepared bytes, and one write. The
 * connection is kept where the rest of the request can be skipped: its length is declared and
 * within what would be read anyway. Otherwise, and when `last` says that the process drains, the
 * usual `writeHead` ends the connection in order.
 */
function answerBusy(req: http.IncomingMessage, res: http.ServerResponse, requestId: string, last: boolean): void {
  const page = acceptsPage(req.headers);
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

/** Gives a request that waited to Express. */
type BeginRequest = (req: IncomingMessage, res: ServerResponse) => void;

/** The decision about a request; a call that waits begins or is refused later. */
export type Fate = 'goes_on' | 'waits' | 'refused';

/** Decides about a request. `begin`: lets it go on later. */
export type LoadShedder = (req: IncomingMessage, res: ServerResponse, begin: BeginRequest) => Fate;

/** How many calls were refused, by reason. */
type ShedCount = Readonly<Record<ShedReason, number>>;

interface LoadShedderParts {
  readonly maxInFlight: number | (() => number);
  /** The mounts of the adapters that take messages, and what their request ids begin with. */
  readonly mounts: IdPrefixes;
  readonly lifecycle: {
    readonly draining: () => boolean;
    /** Counts work that must end before the process does, until the result is called. */
    readonly begin: () => () => void;
  };
  /** Whether the head of a request carries a payment proof. */
  readonly carriesProof: (req: IncomingMessage) => boolean;
  readonly proofs: Pick<ProofStanding, 'networkOf' | 'of'>;
  /** Tells calls at the backend's own address from passed requests; undefined: neither exists. */
  readonly routeOf?: ((req: IncomingMessage) => { readonly kind: string }) | undefined;
  /** Called with what was shed since the last time, at most once in REPORT_MS. */
  readonly onShed: (shed: ShedCount) => void;
  /** Called with the number of slots that outlived the longest call and are free again. */
  readonly onLost: (slots: number) => void;
  /** The share of time that the event loop worked since the last call; default: this process. */
  readonly busy?: () => number;
}

export type OpenedLoadShedder = ReturnType<typeof openLoadShedder>;

/**
 * Opens the load shedder of a process, which watches the event loop until it is closed. Every
 * request takes its turn, documents and 404s too: a flood of such answers would take whole turns
 * from paid calls. Of a refused request only the head is read. Probes are not refused, nor are
 * requests for the adapter with routes: that adapter refuses callers without a right first, and in
 * its own format.
 */
export function openLoadShedder(
  parts: LoadShedderParts,
  limit = new CallLimit({ maxInFlight: parts.maxInFlight, work: parts.lifecycle.begin }),
) {
  const { mounts, lifecycle, proofs, busy = readBusy() } = parts;
  const { slots } = limit;
  const shed = { overload: 0, in_flight: 0 };
  let reported: ShedCount = { ...shed };
  let reportedAt = performance.now();
  const allSlots = new Set([slots]);
  let lost = 0;
  let busyShare = 0;
  const freeLost = (now: number): void => {
    let freed = 0;
    for (const each of allSlots) freed += each.freeLost(now - LONGEST_CALL_MS);
    lost += freed;
    if (freed > 0) parts.onLost(freed);
  };
  const report = (now: number): void => {
    reportedAt = now;
    const since = { overload: shed.overload - reported.overload, in_flight: shed.in_flight - reported.in_flight };
    reported = { ...shed };
    if (since.overload + since.in_flight > 0) parts.onShed(since);
  };
  const watch = setInterval(() => {
    const now = performance.now();
    busyShare = busy();
    limit.judge(busyShare);
    if (now - reportedAt < REPORT_MS) return;
    report(now);
    freeLost(now);
  }, JUDGE_MS).unref();

  /**
   * Answers 503 to a request. False: the request goes on. Without a free slot a message is still
   * read: `limitConcurrency` then refuses the call in the format of its protocol.
   */
  const refused = (req: IncomingMessage, res: ServerResponse, kind: CallKind, channel: string | undefined) => {
    if (kind === 'probe' || channel === ADAPTER_WITH_ROUTES) return false;
    const reason = kind === 'other' || slots.free() ? 'overload' : 'in_flight';
    if (reason === 'in_flight' && channel !== undefined) return false;
    shed[reason] += 1;
    answerBusy(req, res, requestIdFor(req, channel ?? 'req'), lifecycle.draining());
    return true;
  };
  const loadShedder: LoadShedder = function shedLoad(req, res, begin) {
    const path = rawPath(req.url ?? '');
    const channel = mounts.get(path);
    const kind = kindOf(req, path, channel, parts);
    if (limit.admits(kind)) return 'goes_on';
    const client = proofs.networkOf(req);
    const waits = limit.wait({
      ...{ kind, client, standing: proofs.of(req, client), large: bytesOf(req) > SMALL_BYTES },
      gone: () => req.socket.destroyed,
      begin: () => begin(req, res),
      refuse() {
        if (!refused(req, res, kind, channel)) begin(req, res);
      },
    });
    if (waits) return 'waits';
    return refused(req, res, kind, channel) ? 'refused' : 'goes_on';
  };
  return {
    loadShedder,
    slots,
    /**
     * Decides at once, for an adapter that refuses calls itself; `cap`: its own slots beside those
     * of all calls. A call that gets a reason is counted as shed and must be refused. Waiting calls
     * fill the limit again and again, so calls of this adapter may exceed it by LEAST_IN_FLIGHT.
     */
    sheddingFor(cap: Slots): Shedding {
      allSlots.add(cap);
      return function shedAndCount() {
        limit.came();
        const overloaded = slots.inFlight() >= limit.calls + LEAST_IN_FLIGHT;
        const reason = !slots.free() || !cap.free() ? 'in_flight' : overloaded ? 'overload' : undefined;
        if (reason !== undefined) shed[reason] += 1;
        return reason;
      };
    },
    /** The share of the time that the event loop worked in the last moments. */
    busy: () => busyShare,
    /** Since the start. */
    shed: (): ShedCount => ({ ...shed }),
    /** Slots that outlived the longest call, since the start: more than 0 is a bug. */
    lost: () => lost,
    /** Calls that wait for their turn. */
    waiting: () => limit.waiting,
    close(): void {
      clearInterval(watch);
      limit.close();
      report(performance.now());
    },
  };
}

/** A call is a POST, a GET of an invoke path, or a request at the backend's own address. */
function kindOf(
  req: IncomingMessage,
  path: string,
  channel: string | undefined,
  { routeOf, carriesProof }: LoadShedderParts,
): CallKind {
  if (PROBES.has(path)) return 'probe';
  const route = routeOf?.(req).kind ?? 'own';
  const asksForPrice = (req.method === 'GET' || req.method === 'HEAD') && INVOKE_PATH.test(path);
  const isCall = route === 'in_place' || (route === 'own' && (req.method === 'POST' || asksForPrice));
  if (!isCall || channel === ADAPTER_WITH_ROUTES) return 'other';
  return channel !== undefined ? 'message' : carriesProof(req) ? 'proof' : 'plain';
}

/** The most memory that a waiting request takes, bytes: its head, and its body as declared. */
function bytesOf({ headers, rawHeaders, url = '' }: IncomingMessage): number {
  if (headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY;
  let bytes = url.length + Number(headers['content-length'] ?? 0);
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

function readBusy(): () => number {
  let before = performance.eventLoopUtilization();
  return function busy() {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}

/** Requests of a connection that go first after a purchase: a purchase cannot be forged. */
const FIRST_AFTER_PURCHASE = 8;
/** Refused proofs of a network in succession, without a purchase, after which it goes behind. */
export const REFUSED_IN_SUCCESSION = 8;
/** Most networks that are remembered at a time. */
const MAX_NETWORKS = 10_000;

/** Takes the result of the proof that a request brought. */
export type NoteProof = (req: IncomingMessage, came: 'bought' | 'refused') => void;

/**
 * Ranks requests by connection and network, not by the names inside a proof: a forged proof claims
 * any payer. A sender can forge neither the connection of a purchase nor its own network.
 */
export class ProofStanding {
  readonly #networkOf: ClientOf;
  /** Requests left that go first; 0 for a connection whose last proof was refused. */
  readonly #connections = new WeakMap<Socket, number>();
  readonly #refusals = new RecentMap<{ inSuccession: number }>(MAX_NETWORKS);

  constructor(networkOf: ClientOf) {
    this.#networkOf = networkOf;
  }

  /** The network that a request counts for. */
  networkOf(req: IncomingMessage): string {
    return this.#networkOf(req);
  }

  /** The standing of a request that must wait, which uses up one of those that go first. */
  of({ socket }: IncomingMessage, network: string): Standing {
    const left = this.#connections.get(socket);
    if (left === 0) return 'failed';
    if (left !== undefined) {
      if (left > 1) this.#connections.set(socket, left - 1);
      else this.#connections.delete(socket);
      return 'paid';
    }
    return (this.#refusals.use(network)?.inSuccession ?? 0) < REFUSED_IN_SUCCESSION ? 'usual' : 'failed';
  }

  readonly note: NoteProof = (req, came) => {
    const bought = came === 'bought';
    this.#connections.set(req.socket, bought ? FIRST_AFTER_PURCHASE : 0);
    const network = this.#networkOf(req);
    const known = this.#refusals.use(network);
    if (known !== undefined) known.inSuccession = bought ? 0 : known.inSuccession + 1;
    else if (!bought) this.#refusals.add(network, { inSuccession: 1 });
  };
}
