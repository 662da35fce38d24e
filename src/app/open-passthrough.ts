/** Opens the passthrough: proxy, admission and upgrades, with their metrics and log lines. */

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { RequestHandler } from 'express';
import type { GatewayConfig } from '../config/document/config.ts';
import { Places } from '../limiter.ts';
import { createAdmission, createIdleWatch, createRateWatch } from '../passthrough/admission.ts';
import { busy, createProxy, noEnds, passRequests } from '../passthrough/exchange.ts';
import { type ForwardedFacts, passedFields, publicUrls } from '../passthrough/headers.ts';
import type { RequestLine, Route } from '../passthrough/route.ts';
import type { PassthroughSettings } from '../passthrough/settings.ts';
import { createUpgrades, noUpgradeEnds } from '../passthrough/upgrades.ts';
import { note } from '../server/http/access-record.ts';
import { clientAddress, clientNetwork } from '../server/limits/client-address.ts';
import type { RelayParts } from '../server/listener/listen.ts';
import type { Fence, Lifecycle } from '../sidecar/lifecycle.ts';
import { type Log, logUpgrade } from '../telemetry/log/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

interface PassthroughParts {
  /** The present configuration. */
  readonly inUse: { readonly config: GatewayConfig };
  /** Settings of the start; those that a reload may change are read from `inUse`. */
  readonly settings: PassthroughSettings;
  /** The present route of a request. */
  readonly routeOf: (req: RequestLine) => Route;
  readonly lifecycle: Lifecycle;
  readonly fence: Fence;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The share of the time that the event loop works. */
  readonly busy: () => number;
}

export function openPassthrough(parts: PassthroughParts) {
  const { inUse, settings, lifecycle, fence, log, metrics, routeOf } = parts;
  const { origin, pathPrefix } = inUse.config.backend;
  const { idleTimeoutMs } = settings;
  const proxy = createProxy(origin, pathPrefix);
  const admission = createAdmission(() => inUse.config.limits.maxPassthrough, parts.busy);
  const lasting = new Places(() => inUse.config.limits.maxUpgrades, 'share');
  const ends = noEnds();
  const upgradeEnds = noUpgradeEnds();
  const relayed = {
    proxy,
    lasting,
    idleTimeoutMs,
    clientOf: (req: IncomingMessage) => clientNetwork(inUse.config.server.trustProxy)(req),
    watchIdle: createIdleWatch(idleTimeoutMs),
    publicUrl: publicUrls(origin, pathPrefix, inUse.config.merchant.publicBaseUrl),
    factsOf: readFacts(inUse),
  };
  const pass = passRequests({
    ...relayed,
    admission,
    watchRate: createRateWatch(admission.crowded),
    accepting: lifecycle.accepting,
    onEnd(end) {
      ends[end] += 1;
    },
  });
  const upgrades = createUpgrades({
    ...relayed,
    routeOf,
    accepting: () => !lifecycle.draining() && !fence.up(),
    begin: lifecycle.begin,
    onEnd({ target, ...ended }) {
      upgradeEnds[ended.end] += 1;
      logUpgrade(log, target, ended);
    },
  });
  lifecycle.onDraining(upgrades.end);
  const streams = (): number => lasting.taken - upgrades.open();
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
  const upgrade: RelayParts['upgrade'] = (req, socket, head) => upgrades.handle(req, socket as Socket, head);
  const handler: RequestHandler = (req, res, next) => {
    note(res, 'passed', true);
    if (!fence.up()) return pass(req, res, next);
    return fence.pass().then((passes) => (passes ? pass(req, res, next) : next(busy())));
  };
  return {
    /** Answers a request that passes; while the backend restarts it waits with its body unread. */
    handler,
    /** Parts that the listener has to know. */
    relay: { idleTimeoutMs, upgrade: settings.websocket ? upgrade : undefined },
    /** Requests that pass now. */
    running: () => admission.running() + streams(),
    /** Ends the exchanges that run. */
    interrupt: proxy.close,
    /** Closes WebSockets that are still open, and idle connections. */
    close(): void {
      upgrades.end();
      proxy.close();
    },
  };
}

/**
 * Facts of a request for the backend. The scheme comes from the nearest trusted proxy, else from
 * the public address.
 */
function readFacts(inUse: {
  readonly config: GatewayConfig;
}): (req: IncomingMessage, requestId: string) => ForwardedFacts {
  const { backend, merchant } = inUse.config;
  const publicProto = new URL(merchant.publicBaseUrl).protocol === 'https:' ? 'https' : 'http';
  const { host: ownHost } = new URL(backend.origin);
  let known: GatewayConfig | undefined;
  let passes = passedTo(inUse.config);
  return (req, requestId) => {
    const config = inUse.config;
    if (config !== known) passes = passedTo(config);
    known = config;
    const { trustProxy } = config.server;
    const given = trustProxy > 0 ? String(req.headers['x-forwarded-proto'] ?? '') : '';
    const nearest = given.split(',').at(-1)?.trim().toLowerCase();
    const proto = nearest === 'http' || nearest === 'https' ? nearest : publicProto;
    const host = config.backend.passthrough?.preserveHost === true ? undefined : ownHost;
    return { client: clientAddress(trustProxy)(req), proto, requestId, host, passes };
  };
}

/** Keeps the fields of callers apart from the fields that the configuration sets. */
function passedTo({ backend, protocols, resources }: GatewayConfig): ForwardedFacts['passes'] {
  const checkouts = protocols.acp.enabled ? [protocols.acp.backend.headers] : [];
  const configured = [backend.headers, ...checkouts, ...resources.map((resource) => resource.backend.headers)];
  return passedFields({
    allowed: backend.passthrough?.allowHeaders ?? [],
    configured: configured.flatMap((headers) => Object.keys(headers)),
  });
}
