/** The table of routes for `acg validate`: what becomes of a request at each configured path. */

import { DISCOVERY_PATH } from '../checkouts/operations.ts';
import { DID_PATH, KEY_SET_PATH } from '../crypto/signing-key.ts';
import { createPathGuard } from '../passthrough/path-guard.ts';
import type { RequestLine, Route } from '../passthrough/route.ts';
import { USUALLY_INTERNAL } from '../passthrough/settings.ts';
import { needsMandate } from '../payments/x402/wire/challenge.ts';
import type { Catalogue } from '../resources/catalogue.ts';
import { CARD_PATH, PUBLISHED } from '../resources/published.ts';
import { pathShape } from '../resources/url-template.ts';
import {
  type ConfiguredOperation,
  callersPath,
  openRoutes,
  operationsOf,
  ownPathFinder,
  ownPaths,
  type RouteSettings,
  samplePath,
  shadowedPaths,
} from './open-routes.ts';

/** One row: what becomes of requests with this path and method. */
interface RouteRow {
  readonly path: string;
  readonly method: string;
  readonly becomes: 'sold' | 'free' | 'passed' | 'refused' | 'gateway';
  /** The resource, the adapter or the rule that decides it. */
  readonly where: string;
}

/** Methods of operations; one that a path does not declare stands for all others. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const ANY = 'any';
/** Widest column that spaces fill up, characters. */
const WIDEST = 60;

/** Empty where nothing passes and nothing is sold in place: all requests are the gateway's own. */
export function routeTable(config: RouteSettings, catalogue: Pick<Catalogue, 'byId'>): readonly RouteRow[] {
  const routeOf = openRoutes(config, catalogue);
  if (routeOf === undefined) return [];
  const operations = operationsOf(config, catalogue);
  return [...gatewayRows(config), ...operationRows(config, operations, routeOf), ...passthroughRows(config, routeOf)];
}

/** The table as aligned text, and the paths of the backend that the gateway keeps callers from. */
export function routeLines(config: RouteSettings, catalogue: Pick<Catalogue, 'byId'>): readonly string[] {
  const rows = routeTable(config, catalogue);
  if (rows.length === 0) return [];
  return [
    ...aligned([
      ['path', 'method', 'becomes', 'where'],
      ...rows.map(({ path, method, becomes, where }) => [path, method, becomes, where]),
    ]),
    ...shadowedPaths(config).map(
      ({ setting, path, by, partly }) =>
        `shadowed: ${setting} ${path}: the gateway answers ${by} itself${partly ? ', one value of this path' : ''}`,
    ),
  ];
}

/** Cells in columns, as text. */
export function aligned(cells: readonly (readonly string[])[]): readonly string[] {
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.min(WIDEST, Math.max(...cells.map((row) => row[column]?.length ?? 0))),
  );
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** The gateway's own paths take every method, also where they answer 404 or 405. */
function gatewayRows(config: RouteSettings): readonly RouteRow[] {
  const { exact, below } = ownPaths(config);
  const { mcp, a2a, acp } = config.protocols;
  const labels = new Map([
    ...[...exact, ...below].map((path) => [path, 'gateway'] as const),
    ['/api/resources', 'listing, http adapter'],
    ['/.well-known/agent-commerce', 'discovery'],
    ['/api/purchases', 'states of purchases'],
    [CARD_PATH, 'a2a adapter'],
    [DISCOVERY_PATH, 'acp adapter'],
    [KEY_SET_PATH, 'public keys'],
    [DID_PATH, 'public keys of receipts'],
    ...Object.entries(PUBLISHED).map(([name, path]) => [path, `publish: ${name}`] as const),
    ...(['/health', '/ready'] as const).map((path) => [path, 'probes'] as const),
    ...(['/api/receipts', '/api/events', '/console'] as const).map((path) => [path, 'operators'] as const),
    ...Object.entries({ mcp, a2a, acp }).map(([name, { mountPath }]) => [mountPath, `${name} adapter`] as const),
  ]);
  const row = (path: string, shown: string): RouteRow => ({
    path: shown,
    method: ANY,
    becomes: 'gateway',
    where: labels.get(path) ?? '',
  });
  return [...[...exact].map((path) => row(path, path)), ...below.map((path) => row(path, andBelow(path)))];
}

function andBelow(path: string): string {
  return `${path} and below`;
}

/** Rows of the operations: the answer of `routeOf` for each path and each of its methods. */
function operationRows(
  config: RouteSettings,
  operations: readonly ConfiguredOperation[],
  routeOf: (req: RequestLine) => Route,
): readonly RouteRow[] {
  const { pathPrefix } = config.backend;
  const addressed = operations.flatMap((operation) => {
    const path = callersPath(operation.template, pathPrefix);
    return path === undefined ? [] : [{ ...operation, path }];
  });
  const describe = describer(config, operations);
  return [...Map.groupBy(addressed, ({ path }) => pathShape(path)).values()].flatMap((here) => {
    const path = here[0]?.path ?? '';
    const declared = [...new Set(here.map(({ method }) => method))];
    const other = METHODS.find((method) => !declared.some((one) => one === method));
    const rows = [...declared, ...(other === undefined ? [] : [other])].map((method) => {
      const route = routeOf({ method, url: samplePath(path) });
      const shown = method === other ? `${ANY} other` : method;
      return {
        path,
        method: shown,
        ...describe(
          route,
          here.filter((operation) => operation.method === method),
          path,
        ),
      };
    });
    const [first] = rows;
    const same = rows.every(({ becomes, where }) => becomes === first?.becomes && where === first.where);
    return first !== undefined && same ? [{ ...first, method: ANY }] : rows;
  });
}

type Outcome = Pick<RouteRow, 'becomes' | 'where'>;

/** Describes a route by the settings that decide it. */
function describer(config: RouteSettings, operations: readonly ConfiguredOperation[]) {
  const { passthrough, pathPrefix } = config.backend;
  const ownPathAt = ownPathFinder(config);
  const byId = new Map(config.resources.map((resource) => [resource.id, resource]));
  const guarded = operations.filter((operation) => operation.guarded);
  const judge = createPathGuard(guarded);
  const excluded = createPathGuard((passthrough?.exclude ?? []).map((template) => ({ template, below: true })));
  const refusal = (path: string): string => {
    const passage = judge(pathPrefix + samplePath(path));
    if (passage.kind === 'held') return passage.owners.map(soldOver).join('; ');
    return excluded(samplePath(path)).kind === 'pass' ? PASSED_ONLY : EXCLUDED;
  };
  return function describe(route: Route, here: readonly ConfiguredOperation[], path: string): Outcome {
    if (route.kind === 'own') return { becomes: 'gateway', where: ownPathAt(samplePath(path)) ?? NO_ROUTE };
    if (route.kind === 'in_place') {
      const { resourceId } = route.inPlace;
      const resource = byId.get(resourceId);
      const seller = operations.filter((operation) => operation.resource?.id === resourceId).map(soldOver);
      const mandate = resource !== undefined && needsMandate(resource) ? ['needs a mandate'] : [];
      const becomes = resource?.pricing.type === 'free' ? 'free' : 'sold';
      return { becomes, where: [...seller, ...mandate].join('; ') };
    }
    if (route.kind === 'pass') {
      const rule = passthrough?.include === undefined ? 'backend.passthrough' : PASSED_ONLY;
      return { becomes: 'passed', where: [rule, ...here.map(soldOver)].join('; ') };
    }
    const { status, headers, details } = route.error;
    const { allow } = headers;
    const why = details?.reason === 'ambiguous_path' ? `another name, not in ${ALLOWED}` : refusal(path);
    return { becomes: 'refused', where: `${status}: ${allow === undefined ? why : `serves ${allow}`}` };
  };
}

const NO_ROUTE = '404: no route';
const PASSED_ONLY = 'backend.passthrough.include';
const EXCLUDED = 'backend.passthrough.exclude';
const ALLOWED = 'backend.passthrough.allow';

function soldOver({ setting, resource }: ConfiguredOperation): string {
  return resource === undefined ? setting : `${setting} over ${resource.exposedVia.join(', ')}`;
}

/** Rows of `include`, `exclude` and `allow`, and of everything else. */
function passthroughRows(config: RouteSettings, routeOf: (req: RequestLine) => Route): readonly RouteRow[] {
  const { passthrough } = config.backend;
  const rest = { path: 'everything else', method: ANY };
  if (passthrough === undefined) return [{ ...rest, becomes: 'gateway', where: NO_ROUTE }];
  const { include, exclude, allow } = passthrough;
  const ownPathAt = ownPathFinder(config);
  const excluded = createPathGuard(exclude.map((template) => ({ template, below: true })));
  const ruled = (path: string, outcome: Outcome): RouteRow => ({ path: andBelow(path), method: ANY, ...outcome });
  const usual = exclude === USUALLY_INTERNAL ? ', as usual' : '';
  const never: Outcome = { becomes: 'refused', where: `404: ${EXCLUDED}${usual}` };
  return [
    ...exclude.map((path) => ruled(path, never)),
    ...(include ?? []).map((path) => {
      const own = ownPathAt(`${samplePath(path).replace(/\/$/, '')}/x`);
      if (own !== undefined) return ruled(path, { becomes: 'gateway', where: own });
      if (excluded(samplePath(path)).kind !== 'pass') return ruled(path, never);
      return ruled(path, { becomes: 'passed', where: PASSED_ONLY });
    }),
    ...allow
      .filter((path) => routeOf({ method: 'GET', url: samplePath(path) }).kind === 'pass')
      .map((path) => ruled(path, { becomes: 'passed', where: ALLOWED })),
    include === undefined
      ? { ...rest, becomes: 'passed', where: 'backend.passthrough' }
      : { ...rest, becomes: 'refused', where: `404: ${PASSED_ONLY}` },
  ];
}
