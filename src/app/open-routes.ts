/**
 * Compiles the route of a request from the gateway's paths and the backend's operations, and finds
 * paths that both have.
 */

import type { Response } from 'express';
import { DISCOVERY_PATH, OPERATION_RULES, OPERATIONS } from '../checkouts/operations.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { isLoopbackUrl } from '../config/document/endpoints.ts';
import { termsOf } from '../config/sections/resources.ts';
import { createPathGuard, foldedSegments } from '../passthrough/path-guard.ts';
import {
  type AddressedOperation,
  compileRoutes,
  inPlaceOf,
  type OwnPaths,
  type RequestLine,
  type Route,
} from '../passthrough/route.ts';
import { needsMandate } from '../payments/x402/wire/challenge.ts';
import { memberPath, ProblemList } from '../problems/problem.ts';
import { separatedParameters } from '../resources/backend-request.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { CARD_PATH, PUBLISHED } from '../resources/published.ts';
import type { ResourceConfig } from '../resources/settings.ts';
import { pathShape, templateParameters } from '../resources/url-template.ts';
import { APP_PROBES, type AppProbeSettings, appProbeVariable, readAppProbes } from '../sidecar/app-probe-settings.ts';
import { keyDocuments } from './mount-routes.ts';
import type { AcpService } from './open-acp.ts';

/** Undefined: nothing is sold in place and nothing passes, so all requests are the gateway's. */
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

/** Judges a request once: load shedder and middleware both ask, and a malicious path is costly. */
function oncePerRequest(routeOf: (req: RequestLine) => Route): (req: RequestLine) => Route {
  return (req: RequestLine & { [ROUTE]?: Route }) => {
    req[ROUTE] ??= routeOf(req);
    return req[ROUTE];
  };
}

/** The parts of the configuration that decide routes. */
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

/** An operation, and the part of the configuration that has it. */
export interface ConfiguredOperation extends AddressedOperation {
  /** The path of its setting, as problems of the configuration name it. */
  readonly setting: string;
  /** Undefined for a step of a checkout. */
  readonly resource: ResourceConfig | undefined;
}

/**
 * Operations of resources and, on one server with them, of checkouts; `catalogue` adds `inPlace`.
 */
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
 * Makes the path for the log: in place the template, because the path holds the input of a call,
 * and inputs are not logged on any channel.
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

/** A path of the backend that the gateway's own routes keep callers from. */
interface ShadowedPath {
  /** The setting that has the path. */
  readonly setting: string;
  readonly path: string;
  /** The path of the gateway that callers get instead. */
  readonly by: string;
  /** Only some values of its parameters give the path of the gateway. */
  readonly partly: boolean;
}

/**
 * The path of a template below the base URL, without its query; undefined where it is not below it,
 * so that no caller can name it.
 */
export function callersPath(template: string, pathPrefix: string): string | undefined {
  const path = template.replace(/\?.*/, '');
  return path.startsWith(`${pathPrefix}/`) ? path.slice(pathPrefix.length) : undefined;
}

/** A path with `x` for each parameter, a value that no configuration has on purpose. */
export function samplePath(path: string): string {
  return path.replaceAll(/\{[^{}]*\}/g, 'x');
}

/** Finds the gateway's own path at which a path of the backend lies; undefined: none. */
export function ownPathFinder(config: RouteSettings): (path: string) => string | undefined {
  const { exact, below } = ownPaths(config);
  return (path) => {
    const segments = path.split('/');
    const whole = [...exact].find((own) => meets(segments, own, true));
    return whole ?? below.find((own) => meets(segments, own, false));
  };
}

/** Paths of resources and of `include` that the gateway answers itself. */
export function shadowedPaths(config: RouteSettings): readonly ShadowedPath[] {
  const ownPathAt = ownPathFinder(config);
  return configuredPaths(config).flatMap(({ setting, path }) => {
    const by = ownPathAt(path);
    if (by === undefined) return [];
    return [{ setting, path, by, partly: ownPathAt(samplePath(path)) === undefined }];
  });
}

function configuredPaths({ backend, resources }: Pick<GatewayConfig, 'backend' | 'resources'>) {
  const sold = resources.flatMap(({ id, backend: { path: template } }) => {
    const path = callersPath(template, backend.pathPrefix);
    return path === undefined ? [] : [{ setting: `${memberPath('resources', id)}.backend.path`, path }];
  });
  const included = (backend.passthrough?.include ?? []).map((path, index) => ({
    setting: memberPath('backend.passthrough.include', index),
    path,
  }));
  return [...sold, ...included];
}

/** Whether a path, with some values of its parameters, is `own`, or below it unless `whole`. */
function meets(segments: readonly string[], own: string, whole: boolean): boolean {
  const owned = own.split('/');
  if (whole ? segments.length !== owned.length : segments.length < owned.length) return false;
  return owned.every((segment, at) => couldBe(segments[at] ?? '', segment));
}

function couldBe(segment: string, literal: string): boolean {
  if (!segment.includes('{')) return segment === literal;
  const source = segment
    .split(/\{[^{}]*\}/)
    .map((part) => RegExp.escape(part))
    .join('.+');
  return new RegExp(`^${source}$`).test(literal);
}

/** Advice about a probe of a path that is sold. */
const INSTEAD = 'give the merchant a path for its probe that is not sold, or a probe of another kind';

/**
 * Judges whether a path of the merchant, in any spelling and on any port, may be a guarded one: the
 * same routes are often served on a second port, with TLS.
 */
export function soldTargets(config: RouteSettings): (target: string) => boolean {
  const guarded = operationsOf(config).filter((operation) => operation.guarded);
  const judge = createPathGuard(guarded);
  return (target) => guarded.length > 0 && judge(target).kind !== 'pass';
}

/**
 * The merchant's probes of the environment. @throws ConfigError that names the variable of each one
 * that cannot be read, is the path of something sold, or names a port of the gateway
 */
export function openAppProbes(
  env: Readonly<Record<string, string | undefined>>,
  config: RouteSettings & GatewayPorts,
): AppProbeSettings {
  const problems = new ProblemList();
  const probes = readAppProbes(env, problems);
  check(probes, config, problems);
  problems.throwIfAny();
  return probes;
}

function check(probes: AppProbeSettings, config: RouteSettings & GatewayPorts, problems: ProblemList): void {
  const isSold = soldTargets(config);
  const own = [config.server.port, config.management.port];
  for (const kind of APP_PROBES) {
    const probe = probes[kind];
    if (probe === undefined) continue;
    const name = appProbeVariable(kind);
    if (own.includes(probe.port)) problems.add(name, "names a port of the gateway; it must be one of the merchant's");
    else if (isSold(probe.target))
      problems.add(name, `is the path of something that is sold, and would give it for nothing; ${INSTEAD}`);
  }
}

/** The gateway's own listeners. */
interface GatewayPorts {
  readonly server: { readonly port: number };
  readonly management: { readonly port: number };
}

type Segments = ReturnType<typeof foldedSegments>;

/**
 * Compiles a check of the paths that are built for a resource: whether some server may take one for
 * an operation with another price or another need of a mandate, also by a fixed query alone. The
 * first call of a resource makes its guard.
 */
export function otherOperations(
  config: RouteSettings,
  catalogue: Pick<Catalogue, 'byId'>,
): (resourceId: string, path: string) => boolean {
  const known = operationsOf(config, catalogue).map((operation) => ({
    ...operation,
    terms: operation.resource === undefined ? operation.setting : termsOf(operation.resource),
    shape: pathShape(operation.template),
    segments: foldedSegments(operation.template),
    pairs: pairsOf(operation.template.split('?', 2)[1] ?? ''),
  }));
  const sold = known.filter(({ guarded }) => guarded);
  const judges = new Map<string, (path: string, query: string) => boolean>();
  for (const one of known) {
    if (one.resource === undefined) continue;
    const others = sold.filter(({ method, terms }) => method === one.method && terms !== one.terms);
    const anyLength = separatedParameters(one.resource).size > 0;
    const varies = templateParameters(one.template).length > 0;
    const paths = others.filter(
      ({ shape, segments }) => varies && shape !== one.shape && (anyLength || mayMeet(one.segments, segments)),
    );
    const queries = others
      .filter(({ shape, pairs }) => shape === one.shape && pairs.length > 0 && !holdsAll(one.pairs, pairs))
      .map(({ pairs }) => pairs);
    if (paths.length + queries.length > 0) judges.set(one.resource.id, judgeOf(paths, queries));
  }
  return function leadsElsewhere(resourceId, target) {
    const judge = judges.get(resourceId);
    if (judge === undefined) return false;
    const [path = '', query = ''] = target.split('?', 2);
    return judge(path, query);
  };
}

/** `queries`: the fixed queries of operations at the same path. */
function judgeOf(
  paths: readonly { readonly template: string }[],
  queries: readonly (readonly string[])[],
): (path: string, query: string) => boolean {
  let guard: ReturnType<typeof createPathGuard> | undefined;
  return (path, query) => {
    guard ??= createPathGuard(paths);
    const judge = guard;
    if (paths.length > 0 && spellingsOf(path).some((spelling) => judge(spelling).kind !== 'pass')) return true;
    if (queries.length === 0) return false;
    const sent = pairsOf(query);
    return queries.some((pairs) => holdsAll(sent, pairs));
  };
}

/** The pairs of a query as lower-case texts, because some servers ignore case. */
function pairsOf(query: string): readonly string[] {
  return [...new URLSearchParams(query)].map(([name, value]) => `${name}=${value}`.toLowerCase());
}

function holdsAll(pairs: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((pair) => pairs.includes(pair));
}

/** Whether one path may fit both templates; a parameter takes any text of its segment. */
function mayMeet(one: Segments, other: Segments): boolean {
  const isText = ({ length }: readonly string[]): boolean => length === 1;
  return (
    one.length === other.length &&
    one.every((literals, at) => {
      const others = other[at] ?? [];
      return !isText(literals) || !isText(others) || literals[0] === others[0];
    })
  );
}

/** A path, and the path without endings that frameworks read as a format (`/full.json`). */
function spellingsOf(path: string): readonly string[] {
  const name = path.lastIndexOf('/') + 1;
  const ends = new Set([path.length, path.indexOf('.', name), path.lastIndexOf('.')].filter((end) => end > name));
  return [...ends].map((end) => path.slice(0, end));
}
