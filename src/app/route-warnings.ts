/** Warnings for the operator: of a configuration, of passthrough, of sale in place. */

import type { GatewayConfig } from '../config/document/config.ts';
import { configWarnings } from '../config/warnings.ts';
import { hasLiteral } from '../passthrough/path-guard.ts';
import type { RequestLine, Route } from '../passthrough/route.ts';
import { type PassthroughSettings, USUALLY_INTERNAL } from '../passthrough/settings.ts';
import { memberPath } from '../problems/problem.ts';
import type { ResourceConfig } from '../resources/settings.ts';
import { pathShape } from '../resources/url-template.ts';
import {
  type ConfiguredOperation,
  callersPath,
  openRoutes,
  operationsOf,
  type RouteSettings,
  samplePath,
  shadowedPaths,
} from './open-routes.ts';

/** Most settings that one warning names. */
const MOST_NAMED = 20;

/** An operation that a caller can name, at the path that callers have. */
interface Addressed extends ConfiguredOperation {
  readonly path: string;
}

/** All warnings of an accepted configuration. */
export function warningsOf(config: GatewayConfig): readonly string[] {
  return [...configWarnings(config), ...routeWarnings(config)];
}

/** Warns of prices, sale in place and passthrough. Each warning names its setting. */
export function routeWarnings(config: RouteSettings & Pick<GatewayConfig, 'merchant'>): readonly string[] {
  const { backend, resources } = config;
  const inPlace = resources.some(({ address }) => address !== undefined);
  const idle = withoutAddress(config, inPlace);
  const always = [...idle, ...priceWarnings(resources)];
  if (backend.passthrough === undefined && !inPlace) return always;
  const operations = operationsOf(config).flatMap((operation): readonly Addressed[] => {
    const path = callersPath(operation.template, backend.pathPrefix);
    return path === undefined ? [] : [{ ...operation, path }];
  });
  return [
    ...always,
    ...(inPlace ? publicUrlWarnings(config) : []),
    ...shadowWarnings(config),
    ...passthroughWarnings(config, operations),
  ];
}

/** Warns of settings for sale in place that have no effect. */
function withoutAddress({ backend, resources }: RouteSettings, inPlace: boolean): readonly string[] {
  const strict = resources.filter((resource) => resource.address === undefined && resource.backend.strictQuery);
  return [
    ...(backend.originHeaders.length > 0 && !inPlace
      ? ['backend.originHeaders: no resource has origin under expose, so no call brings these headers; remove it']
      : []),
    ...strict.map(
      ({ id }) =>
        `${memberPath('resources', id)}.backend.strictQuery: has no effect without origin under expose; remove it`,
    ),
  ];
}

/** Addresses begin with the public URL; routes are matched without its path. */
function publicUrlWarnings({ merchant }: Pick<GatewayConfig, 'merchant'>): readonly string[] {
  if (new URL(merchant.publicBaseUrl).pathname === '/') return [];
  return [
    'merchant.publicBaseUrl: its path stands before every address of what is sold in place; the proxy in front must take it off the requests that it hands on',
  ];
}

function shadowWarnings(config: RouteSettings): readonly string[] {
  const { resources } = config;
  const sold = resources.filter(({ address }) => address !== undefined).map(({ id }) => memberPath('resources', id));
  const inPlace = new Set(sold);
  return shadowedPaths(config).flatMap(({ setting, by, partly }) => {
    const some = partly ? ' for one value' : '';
    if (setting.startsWith('backend.passthrough'))
      return [`${setting}: does not reach the backend${some}, because the gateway answers ${by} itself; remove it`];
    return inPlace.has(setting.replace(/\.backend\.path$/, ''))
      ? [`${setting}: is not sold at its own address${some}, because the gateway answers ${by} itself; move it`]
      : [];
  });
}

/** Warns of an operation with two prices: agents take the lower one. */
function priceWarnings(resources: readonly ResourceConfig[]): readonly string[] {
  /** The first resource with each price of an operation. */
  const seen = new Map<string, Map<bigint, string>>();
  return resources.flatMap((resource) => {
    const key = operationKey(resource);
    const own = price(resource);
    const firsts = seen.get(key) ?? new Map<bigint, string>();
    seen.set(key, firsts);
    const others = [...firsts].filter(([other]) => other !== own).map(([, setting]) => setting);
    const setting = memberPath('resources', resource.id);
    if (!firsts.has(own)) firsts.set(own, setting);
    if (others.length === 0) return [];
    return [`${setting}: is the same operation as ${someOf(others)} at another price; agents take the lower one`];
  });
}

/** Settings by name, and how many more there are. */
function someOf(settings: readonly string[]): string {
  const more = settings.length - MOST_NAMED;
  return settings.slice(0, MOST_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** The key of an operation: its method, path, fixed query and headers. */
function operationKey({ backend: { method, path, headers } }: ResourceConfig): string {
  const [address = '', query = ''] = path.split('?');
  return JSON.stringify([method, pathShape(address), query, Object.entries(headers).toSorted()]);
}

function price({ pricing }: ResourceConfig): bigint {
  return pricing.type === 'free' ? 0n : pricing.units;
}

function passthroughWarnings(config: RouteSettings, operations: readonly Addressed[]): readonly string[] {
  const { passthrough } = config.backend;
  const routeOf = openRoutes(config);
  if (passthrough === undefined || routeOf === undefined) return [];
  return [
    ...(passthrough.exclude === USUALLY_INTERNAL
      ? [
          'backend.passthrough: has neither include nor exclude, so /admin, /metrics and the like do not pass; name what passes under include, or what does not under exclude ([] for nothing)',
        ]
      : []),
    ...excludeWarnings(passthrough),
    ...operations
      .filter(({ guarded, path }) => guarded && !hasLiteral(path))
      .map(
        ({ setting }) =>
          `${setting}: its path has no fixed segment, so no path with //, ;, dot segments or encoded separators passes; give it one`,
      ),
    ...freeWarnings(operations, routeOf),
    ...headerWarnings(config.backend.headers, passthrough),
  ];
}

/** Warns of an `exclude` that replaces the usual list and has none of its paths. */
function excludeWarnings({ include, exclude }: PassthroughSettings): readonly string[] {
  if (include !== undefined || exclude === USUALLY_INTERNAL || exclude.length === 0) return [];
  const missing = USUALLY_INTERNAL.filter((path) => !exclude.includes(path));
  if (missing.length < USUALLY_INTERNAL.length) return [];
  return [
    `backend.passthrough.exclude: replaces the usual list, so ${missing.slice(0, 3).join(', ')} and the like pass; add them here where the backend has them`,
  ];
}

/** Warns of free operations that also pass, or that callers miss because their path is sold. */
function freeWarnings(operations: readonly Addressed[], routeOf: (req: RequestLine) => Route): readonly string[] {
  const atOne = Map.groupBy(operations, ({ path }) => pathShape(path));
  return operations.flatMap(({ setting, method, path, guarded }) => {
    if (guarded) return [];
    const same = atOne.get(pathShape(path)) ?? [];
    if (same.some((other) => other.method === method && other.resource?.address !== undefined)) return [];
    const route = routeOf({ method, url: samplePath(path) });
    if (route.kind === 'pass')
      return [
        `${setting}: is free, and its path passes to the backend as well, without events and receipts; add origin to expose, or its path to backend.passthrough.exclude`,
      ];
    if (route.kind !== 'refused') return [];
    if (route.error.details?.reason === 'ambiguous_path')
      return [
        `${setting}: does not pass to the backend, because its path may be another name of something that is sold; add origin to expose to serve it there, or its path to backend.passthrough.allow`,
      ];
    const sold = same.filter((other) => other.guarded).map((other) => other.setting);
    if (sold.length === 0) return [];
    return [
      `${setting}: does not pass to the backend, because no method of a path passes at which something is sold (${someOf(sold)}); add origin to expose to serve it there`,
    ];
  });
}

/** Warns of login fields that sold calls set, so that those of callers do not pass. */
function headerWarnings(
  headers: Readonly<Record<string, string>>,
  { allowHeaders }: PassthroughSettings,
): readonly string[] {
  return ['authorization', 'cookie']
    .filter((name) => Object.hasOwn(headers, name) && !allowHeaders.includes(name))
    .map(
      (name) =>
        `${memberPath('backend.headers', name)}: is set in sold calls, so no ${name} of callers passes; add it to backend.passthrough.allowHeaders where people log in with it`,
    );
}
