/** Opens the decision whose a request is, from the gateway's paths and what the backend sells. */

import type { Response } from 'express';
import { DISCOVERY_PATH, OPERATION_RULES, OPERATIONS } from '../checkouts/operations.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { isLoopbackUrl } from '../config/document/endpoints.ts';
import {
  type AddressedOperation,
  compileRoutes,
  inPlaceOf,
  type OwnPaths,
  type RequestLine,
  type Route,
} from '../passthrough/route.ts';
import { needsMandate } from '../payments/x402/wire/challenge.ts';
import { memberPath } from '../problems/problem.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { CARD_PATH, PUBLISHED } from '../resources/published.ts';
import type { ResourceConfig } from '../resources/settings.ts';
import type { AcpService } from './open-acp.ts';
import { keyDocuments } from './public-routes.ts';

/** Undefined: nothing is sold in place and nothing passes, so all requests are its own. */
export function openRoutes(
  config: RouteSettings,
  catalogue?: Pick<Catalogue, 'byId'>,
): ((req: RequestLine) => Route) | undefined {
  const { passthrough, pathPrefix } = config.backend;
  if (passthrough === undefined && config.resources.every(({ address }) => address === undefined)) return undefined;
  const own = ownPaths(config);
  return oncePerRequest(compileRoutes({ own, operations: operationsOf(config, catalogue), pathPrefix, passthrough }));
}

const ROUTE = Symbol('whose it is');

/** Load shedder and middleware ask for the same request; a malicious path is costly to judge. */
function oncePerRequest(routeOf: (req: RequestLine) => Route): (req: RequestLine) => Route {
  return (req: RequestLine & { [ROUTE]?: Route }) => {
    req[ROUTE] ??= routeOf(req);
    return req[ROUTE];
  };
}

/** What the decision is made from, of the configuration. */
export type RouteSettings = Pick<
  GatewayConfig,
  'merchant' | 'backend' | 'protocols' | 'authorization' | 'signing' | 'resources' | 'publish'
>;

/**
 * The paths that belong to the gateway with all their methods, also where they answer 404: those of
 * the interface specification, of the enabled adapters, the console, the public keys and what
 * `publish` lists.
 */
export function ownPaths(config: Omit<RouteSettings, 'backend' | 'resources'>): OwnPaths {
  const { mcp, a2a, acp } = config.protocols;
  return {
    exact: new Set([
      ...['/health', '/ready', '/.well-known/agent-commerce'],
      ...(a2a.enabled ? [CARD_PATH] : []),
      ...(acp.enabled ? [DISCOVERY_PATH] : []),
      ...keyDocuments(config).keys(),
      ...[...config.publish].map((name) => PUBLISHED[name]),
    ]),
    below: [
      ...['/api/resources', '/api/receipts', '/api/events', '/console'],
      ...(config.signing === undefined ? [] : ['/api/purchases']),
      ...[mcp, a2a, acp].filter(({ enabled }) => enabled).map(({ mountPath }) => mountPath),
    ],
  };
}

/** An operation, and what of the configuration it comes from. */
export interface ConfiguredOperation extends AddressedOperation {
  /** The path of its setting, as problems of the configuration name it. */
  readonly setting: string;
  /** Undefined for a step of a checkout. */
  readonly resource: ResourceConfig | undefined;
}

/** Operations that never pass or are sold in place; without a catalogue no address is read. */
export function operationsOf(
  { backend, protocols: { acp }, resources }: RouteSettings,
  catalogue?: Pick<Catalogue, 'byId'>,
): readonly ConfiguredOperation[] {
  const checkout = acp.enabled && sameServer(acp.backend.origin, backend.origin) ? acp.backend.operations : undefined;
  return [
    ...resources.map((resource) => {
      const address = catalogue?.byId.get(resource.id)?.address;
      return {
        method: resource.backend.method,
        template: resource.backend.path,
        guarded: resource.pricing.type !== 'free' || needsMandate(resource),
        inPlace: address && { resourceId: resource.id, address },
        setting: memberPath('resources', resource.id),
        resource,
      };
    }),
    ...(checkout === undefined ? [] : OPERATIONS).map((id) => ({
      method: OPERATION_RULES[id].method,
      template: checkout?.[id].path ?? '',
      guarded: true,
      inPlace: undefined,
      setting: `protocols.acp.backend.operations.${id}`,
      resource: undefined,
    })),
  ];
}

/** Whether two origins may be one server: all names and addresses of loopback are one host. */
function sameServer(one: string, other: string): boolean {
  if (one === other) return true;
  return isLoopbackUrl(one) && isLoopbackUrl(other) && new URL(one).port === new URL(other).port;
}

/**
 * What the log may show of a path: in place the template, because the path holds the input of a
 * call, and inputs are not logged on any channel.
 */
export function shownPath(
  { merchant, resources }: Pick<GatewayConfig, 'merchant' | 'resources'>,
  checkouts: Pick<AcpService, 'shownPath'> | undefined,
): (path: string, res: Response) => string {
  const templates = new Map(
    resources.flatMap(({ id, address }) =>
      address === undefined ? [] : [[id, address.slice(merchant.publicBaseUrl.length)] as const],
    ),
  );
  return (path, res) => {
    const template = templates.get(inPlaceOf(res)?.resourceId ?? '');
    return template ?? checkouts?.shownPath(path) ?? path;
  };
}
