/** Opens the passthrough: proxy, admission and upgrades, with their metrics and log lines. */

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { RequestHandler, Response } from 'express';
import type { GatewayConfig } from '../config/document/config.ts';
import { asGatewayError, type GatewayError } from '../errors.ts';
import { type Admission, createAdmission, watchLoopLoad } from '../passthrough/admission.ts';
import { busy, ENDS, type End, passRequests } from '../passthrough/exchange.ts';
import { failurePage, PAGE_HEADERS } from '../passthrough/failure-page.ts';
import { createIdleWatch, createRateWatch } from '../passthrough/idle-timer.ts';
import { createProxy } from '../passthrough/proxy.ts';
import { type ForwardedFacts, passedFields } from '../passthrough/request-headers.ts';
import { publicUrls } from '../passthrough/response-headers.ts';
import type { RequestLine, Route } from '../passthrough/route.ts';
import type { PassthroughSettings } from '../passthrough/settings.ts';
import { createUpgrades, type EndedUpgrade, UPGRADE_ENDS, type UpgradeEnd } from '../passthrough/upgrades.ts';
import type { FailureListener } from '../pipeline/middleware/error-handler.ts';
import { acceptsPage } from '../server/http/accepts-page.ts';
import { noteOutcome, notePassed } from '../server/http/access-record.ts';
import { idsOf, requestIdOf } from '../server/http/request-id.ts';
import { sendText } from '../server/http/respond.ts';
import type { RelayParts } from '../server/listener/listen.ts';
import { type ClientOf, clientAddress, clientNetwork } from '../server/rate-limit/client-address.ts';
import { Shares } from '../server/rate-limit/shares.ts';
import type { Fence } from '../sidecar/fence.ts';
import type { Lifecycle } from '../sidecar/lifecycle.ts';
import { type Log, upgradeLog } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

interface PassthroughParts {
  /** The present configuration. */
  readonly now: () => Pick<GatewayConfig, 'backend' | 'limits' | 'merchant' | 'server' | 'protocols' | 'resources'>;
  /** Of the start: what of them may change is read where it is used. */
  readonly settings: PassthroughSettings;
  /** Whose a request is now. */
  readonly routeOf: (req: RequestLine) => Route;
  readonly lifecycle: Pick<Lifecycle, 'accepting' | 'begin' | 'draining' | 'onDraining'>;
  readonly fence: Pick<Fence, 'up' | 'pass'>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly onFailure: FailureListener;
}

/** Opens what passes to the backend. */
export function openPassthrough(parts: PassthroughParts) {
  const { now, settings, lifecycle, fence, log, metrics, routeOf } = parts;
  const { backend, merchant } = now();
  const { origin, pathPrefix } = backend;
  const { idleTimeoutMs } = settings;
  const proxy = createProxy(origin);
  const watchIdle = createIdleWatch(idleTimeoutMs);
  const admission = createAdmission(() => now().limits.maxPassthrough, watchLoopLoad());
  const watchRate = createRateWatch(admission.crowded);
  const lasting = new Shares(() => now().limits.maxUpgrades);
  const clientOf = (req: IncomingMessage): string => clientNetwork(now().server.trustProxy)(req);
  const factsOf = readFacts(now);
  const publicUrl = publicUrls({ origin, pathPrefix, publicBaseUrl: merchant.publicBaseUrl });
  const ends = countsOf<End>(ENDS);
  const upgradeEnds = countsOf<UpgradeEnd>(UPGRADE_ENDS);
  const logUpgrade = upgradeLog(log);
  const relayed = { proxy, lasting, clientOf, pathPrefix, idleTimeoutMs, watchIdle, publicUrl };
  const pass = passRequests({
    ...{ ...relayed, admission, watchRate },
    factsOf: (req, res) => factsOf(req, requestIdOf(res)),
    accepting: () => lifecycle.accepting(),
    onEnd: (end) => {
      ends[end] += 1;
    },
  });
  const upgrades = createUpgrades({
    ...{ ...relayed, routeOf, factsOf },
    accepting: () => !lifecycle.draining() && !fence.up(),
    begin: () => lifecycle.begin(),
    onEnd: (ended: EndedUpgrade) => {
      upgradeEnds[ended.end] += 1;
      logUpgrade(ended);
    },
  });
  lifecycle.onDraining(() => upgrades.end());
  const streams = (): number => lasting.taken - upgrades.open();
  showPassthrough(metrics, { admission, ends, upgradeEnds, upgrades, streams });
  return {
    /** Answers a request that passes. */
    handler: withPage(held(pass, fence), parts.onFailure),
    /** Parts that the listener has to know. */
    relay: { idleTimeoutMs, upgrade: settings.websocket ? onSocket(upgrades.handle) : undefined },
    /** Requests that pass now. */
    running: () => admission.running() + streams(),
    /** Ends the exchanges that run. */
    interrupt: () => proxy.close(),
    /** Closes WebSockets that are still open, and idle connections. */
    close(): void {
      upgrades.end();
      proxy.close();
    },
  };
}

/** Node types the connection of an upgrade as a stream; a listener without TLS has sockets. */
function onSocket(handle: (req: IncomingMessage, socket: Socket, head: Buffer) => void): RelayParts['upgrade'] {
  return (req, socket, head) => handle(req, socket as Socket, head);
}

/** Holds requests while the backend restarts; their bodies wait unread. */
function held(pass: RequestHandler, fence: PassthroughParts['fence']): RequestHandler {
  return function holdWhileFenced(req, res, next) {
    if (!fence.up()) return pass(req, res, next);
    return fence
      .pass()
      .then((passes) => (passes ? pass(req, res, next) : next(busy())))
      .catch(next);
  };
}

/** Notes what passes in its access record, and shows failures to people as a page. */
function withPage(pass: RequestHandler, onFailure: FailureListener): RequestHandler {
  return function passThrough(req, res, next) {
    notePassed(res);
    const { accept } = req.headers;
    const failed = (thrown: unknown): void => {
      if (res.headersSent || !acceptsPage(accept)) next(thrown);
      else sendPage(res, asGatewayError(thrown), onFailure);
    };
    try {
      void pass(req, res, failed);
    } catch (thrown) {
      failed(thrown);
    }
  };
}

function sendPage(res: Response, error: GatewayError, onFailure: FailureListener): void {
  const ids = idsOf(res);
  onFailure(error, ids);
  noteOutcome(res, error.code);
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
  res.setHeader('cache-control', 'no-store');
  sendText(res, error.status, PAGE_HEADERS, failurePage(error, ids.requestId));
}

/**
 * Facts of a request for the backend. The scheme is that which the nearest trusted proxy names,
 * else that of the public address.
 */
function readFacts(now: PassthroughParts['now']): (req: IncomingMessage, requestId: string) => ForwardedFacts {
  const { backend, merchant } = now();
  const publicProto = new URL(merchant.publicBaseUrl).protocol === 'https:' ? 'https' : 'http';
  const { host: ownHost } = new URL(backend.origin);
  const clients = new Map<number, ClientOf>();
  const fields = new WeakMap<object, ForwardedFacts['passes']>();
  return (req, requestId) => {
    const config = now();
    const { backend: present } = config;
    const { trustProxy } = config.server;
    const passes = fields.get(present) ?? passedTo(config);
    fields.set(present, passes);
    const clientOf = clients.get(trustProxy) ?? clientAddress(trustProxy);
    clients.set(trustProxy, clientOf);
    const given = trustProxy > 0 ? String(req.headers['x-forwarded-proto'] ?? '') : '';
    const nearest = given.split(',').at(-1)?.trim().toLowerCase();
    const proto = nearest === 'http' || nearest === 'https' ? nearest : publicProto;
    const host = present.passthrough?.preserveHost === true ? undefined : ownHost;
    return { client: clientOf(req), proto, requestId, host, passes };
  };
}

/** Keeps the fields of callers apart from the fields that the configuration sets. */
function passedTo(config: Pick<GatewayConfig, 'backend' | 'protocols' | 'resources'>): ForwardedFacts['passes'] {
  const { backend, protocols, resources } = config;
  const checkouts = protocols.acp.enabled ? [protocols.acp.backend.headers] : [];
  const configured = [backend.headers, ...checkouts, ...resources.map((resource) => resource.backend.headers)];
  return passedFields({
    allowed: backend.passthrough?.allowHeaders ?? [],
    configured: configured.flatMap((headers) => Object.keys(headers)),
  });
}

function countsOf<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

interface Shown {
  readonly admission: Pick<Admission, 'running' | 'waiting'>;
  readonly ends: Readonly<Record<End, number>>;
  readonly upgradeEnds: Readonly<Record<UpgradeEnd, number>>;
  readonly upgrades: { open(): number };
  readonly streams: () => number;
}

function showPassthrough(metrics: Metrics, { admission, ends, upgradeEnds, upgrades, streams }: Shown): void {
  metrics.counter({
    name: 'acg_passthrough_requests_total',
    help: 'Requests that passed to the backend by their end. busy: limits.maxPassthrough or the queue; unusable: an answer that may not be relayed.',
    label: 'end',
    read: () => ends,
  });
  metrics.gauge({
    name: 'acg_passthrough_running',
    help: 'Requests that pass to the backend now, without event streams; at most limits.maxPassthrough.',
    read: () => admission.running(),
  });
  metrics.gauge({
    name: 'acg_passthrough_waiting',
    help: 'Requests that wait for their turn to pass to the backend, five seconds at most.',
    read: () => admission.waiting(),
  });
  metrics.counter({
    name: 'acg_passthrough_upgrades_total',
    help: 'WebSocket upgrades by their end. closed: it was open; declined: the backend answered without one.',
    label: 'end',
    read: () => upgradeEnds,
  });
  metrics.gauge({
    name: 'acg_passthrough_upgrades_open',
    help: 'WebSockets to the backend that are open or opening; with the event streams at most limits.maxUpgrades.',
    read: () => upgrades.open(),
  });
  metrics.gauge({
    name: 'acg_passthrough_event_streams',
    help: 'Event streams of the backend that are open.',
    read: streams,
  });
}
