/**
 * Decides whose a request is, before any route: the gateway's own, a sale at the backend's own
 * address, the backend's, or refused. Stands in front of the routes and of WebSocket upgrades.
 */

import type { RequestHandler, Response } from 'express';
import { GatewayError } from '../errors.ts';
import type { AddressReader } from '../resources/reverse-template.ts';
import { pathShape, templatePath } from '../resources/url-template.ts';
import { belowMount, originForm } from '../server/http/request.ts';
import {
  createLiteralOrder,
  createPathGuard,
  createPathTrie,
  decodeAll,
  foldedSegments,
  hasDotSegment,
  isLiteral,
  type RefusedTarget,
  readings,
} from './path-guard.ts';
import { type PassthroughSettings, USUALLY_INTERNAL } from './settings.ts';

/** The destination of a request. */
export type Route =
  /** To the routes of the gateway, which may answer 404. */
  | { readonly kind: 'own' }
  /** To the adapter that sells at the backend's own address. */
  | { readonly kind: 'in_place'; readonly inPlace: InPlaceRoute }
  /** To the backend, as it came. */
  | { readonly kind: 'pass' }
  | { readonly kind: 'refused'; readonly error: GatewayError };

/** A request at the address of an operation that is sold there. */
export interface InPlaceRoute {
  readonly resourceId: string;
  /** `head`: a HEAD of a GET. `options`: asks for the methods of the address. */
  readonly asks: 'call' | 'head' | 'options';
  /** As the backend has it, with the prefix of its base URL, without the query. */
  readonly path: string;
  /** As it came, without the `?`. */
  readonly query: string;
  /** The path as the caller has it. */
  readonly publicPath: string;
  /** The methods of this address, for `Allow`. */
  readonly allow: string;
}

/** An operation of the backend that has rules of its own. */
export interface AddressedOperation {
  readonly method: string;
  /** With the prefix of the base URL; its fixed query does not count. */
  readonly template: string;
  /** It has a price, needs a mandate, or is a step of a checkout: it never passes. */
  readonly guarded: boolean;
  /** Its sale in place; undefined: it has none. */
  readonly inPlace: { readonly resourceId: string; readonly address: AddressReader } | undefined;
}

/** Paths of the gateway itself, with all their methods. */
export interface OwnPaths {
  readonly exact: ReadonlySet<string>;
  /** These and everything below them. */
  readonly below: readonly string[];
}

/** The settings of paths. */
type PathSettings = Pick<PassthroughSettings, 'include' | 'exclude' | 'allow'>;

/** The parts of the decision. */
interface RouteParts {
  readonly own: OwnPaths;
  readonly operations: readonly AddressedOperation[];
  /** The path of the backend's base URL, without a trailing slash. */
  readonly pathPrefix: string;
  /** Undefined: requests that are no sale in place go to the routes of the gateway. */
  readonly passthrough: PathSettings | undefined;
}

/** The request line as Node has it. `originalUrl`: the target as it was sent, if `url` is not. */
export interface RequestLine {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly originalUrl?: string | undefined;
}

const OWN: Route = { kind: 'own' };
const PASS: Route = { kind: 'pass' };
/** Methods of a request that may pass, for `Allow`; TRACE would show the headers of proxies. */
const PASSED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** Compiles the decision. It reads the request line alone, and costs about a microsecond. */
export function compileRoutes({ own, operations, pathPrefix, passthrough }: RouteParts): (req: RequestLine) => Route {
  const guardedOnes = operations.filter(({ guarded }) => guarded);
  const judge = createPathGuard(guardedOnes);
  const sold = operations.flatMap(({ method, template, inPlace }) =>
    inPlace === undefined ? [] : [{ method, template, ...inPlace }],
  );
  const soldAt = createPathTrie(
    sold.map((owner) => ({ segments: templatePath(owner.template).split('/').slice(1).map(segmentLiterals), owner })),
    false,
  );
  const passed = passthrough && compilePassed(passthrough, pathPrefix, guardedOnes);
  return function routeOf({ method = '', url = '/', originalUrl = url }) {
    const target = originForm(url);
    const mark = target.indexOf('?');
    const publicPath = mark < 0 ? target : target.slice(0, mark);
    if (target === '*' || isOwn(own, publicPath)) return OWN;
    const passage = originalUrl.startsWith('/') ? judge(pathPrefix + target) : TARGET_REFUSED;
    if (passage.kind === 'refused') return passed === undefined ? OWN : refusedTarget(passage.reason);
    const path = pathPrefix + publicPath;
    const owners = passage.kind === 'held' ? passage.owners : [];
    const here = soldAt(path).filter(
      (one) => one.address.matches(path) && !owners.some((owner) => isOther(owner, one)),
    );
    const query = mark < 0 ? '' : target.slice(mark + 1);
    if (here.length > 0) {
      const inPlace = inPlaceRoute(here, method, { path, query, publicPath });
      if (inPlace !== undefined) return { kind: 'in_place', inPlace };
      if (passage.kind === 'held' || passed === undefined) return notAllowed(allowOf(here));
    }
    if (passed === undefined) return OWN;
    return passage.kind === 'held' ? heldElsewhere(passage.owners) : passed(method, path, query);
  };
}

/** Literals of a segment as it is written: the raw path decides about sales in place. */
function segmentLiterals(segment: string): readonly string[] {
  return segment.split(/\{[^{}]*\}/);
}

const TARGET_REFUSED = { kind: 'refused', reason: 'target' } as const;

function isOwn({ exact, below }: OwnPaths, path: string): boolean {
  return exact.has(path) || below.some((mount) => belowMount(mount, path) !== undefined);
}

/**
 * Whether a server may run another operation, not sold in place, at a path that is sold in place.
 * A template with fewer segments is a page above that path, such as a list.
 */
function isOther(owner: AddressedOperation, { template }: SoldHere): boolean {
  if (owner.inPlace !== undefined) return false;
  const [one, other] = [withoutEnd(pathShape(owner.template)), withoutEnd(pathShape(template))];
  return one !== other && one.split('/').length === other.split('/').length;
}

/** Without a slash at its end. */
function withoutEnd(path: string): string {
  return path.replace(/\/$/, '');
}

interface SoldHere {
  readonly template: string;
  readonly method: string;
  readonly resourceId: string;
  readonly address: AddressReader;
}

/** The most literal of the operations that serve a method here; undefined: none does. */
function inPlaceRoute(
  here: readonly SoldHere[],
  method: string,
  target: Pick<InPlaceRoute, 'path' | 'query' | 'publicPath'>,
): InPlaceRoute | undefined {
  const asks = method === 'HEAD' ? 'head' : method === 'OPTIONS' ? 'options' : 'call';
  const wanted = asks === 'head' ? 'GET' : method;
  const serving = asks === 'options' ? here : here.filter((operation) => operation.method === wanted);
  const [most] = serving.toSorted((a, b) => a.address.parameters.length - b.address.parameters.length);
  return most && { resourceId: most.resourceId, asks, ...target, allow: allowOf(here) };
}

function allowOf(here: readonly SoldHere[]): string {
  const methods = here.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...new Set([...methods, 'OPTIONS'])].join(', ');
}

/** Decides about unguarded paths by the settings and the templates of guarded operations. */
function compilePassed(
  { include, exclude, allow }: PathSettings,
  pathPrefix: string,
  guarded: readonly AddressedOperation[],
): (method: string, path: string, query: string) => Route {
  const excluded = createPathGuard(exclude.map((template) => ({ template: pathPrefix + template, below: true })));
  // The usual list is a guess: other pages use its words too.
  const named = exclude === USUALLY_INTERNAL ? [] : exclude.map((template) => pathPrefix + template);
  const secondName = createSecondNames(
    guarded.map(({ template }) => template),
    named,
    pathPrefix,
  );
  const included = include?.map((template) => belowTemplate(pathPrefix + template));
  // An `include` path allows second names only if it is one itself, not if it is above one.
  const listed = include?.filter((template) => secondName(pathPrefix + template, '') !== undefined) ?? [];
  const allowed = [...allow, ...listed].map((template) => belowTemplate(pathPrefix + template));
  return (method, path, query) => {
    if (method === 'TRACE' || method === 'CONNECT') return notAllowed(PASSED_METHODS);
    // With a prefix or `include`, dot segments must not lead out of the paths that pass.
    if ((included !== undefined || pathPrefix !== '') && hasDotSegment(path)) return refusedTarget('ambiguous');
    if (excluded(path).kind !== 'pass') return refused('NOT_FOUND', { message: NOT_PASSED });
    if (included?.some((pattern) => pattern.test(path)) === false) return refused('NOT_FOUND');
    const second = secondName(path, query);
    if (second === undefined || (allowed.some((pattern) => pattern.test(path)) && !hasDotSegment(path))) return PASS;
    return refusedTarget(second);
  };
}

/** Matches a path exactly as it is written, and all below it: no other spelling passes. */
function belowTemplate(template: string): RegExp {
  const source = template
    .replace(/\/$/, '')
    .split(/\{[^{}]*\}/)
    .map((literal) => RegExp.escape(literal))
    .join('[^/]+');
  return new RegExp(`^${source}(?:/.*)?$`, 's');
}

function refused(...error: ConstructorParameters<typeof GatewayError>): Route {
  return { kind: 'refused', error: new GatewayError(...error) };
}

function refusedTarget(why: RefusedTarget | SecondName): Route {
  const reason = why === 'target' ? 'request_target' : 'ambiguous_path';
  return refused('INPUT_INVALID', { message: TARGET_MESSAGES[why], details: { reason } });
}

const TARGET_MESSAGES = {
  target: 'The target of this request must begin with / and hold visible ASCII without \\ and #, at most 8 KiB.',
  ambiguous:
    'Servers could take this path for another one that does not pass. Spell it without dot segments, double slashes, ; and encoded separators.',
  path: 'Servers could take this path for another name of one that does not pass. It passes where backend.passthrough.allow names it.',
  query:
    'The query of this request has the path of something that does not pass. It passes where backend.passthrough.allow names the path in front of the query.',
} as const;

/** Refuses a guarded path at which nothing is sold in place. */
function heldElsewhere(owners: readonly AddressedOperation[]): Route {
  if (owners.some(({ inPlace }) => inPlace !== undefined))
    return refused('INPUT_INVALID', {
      message: 'What is sold here has another spelling of its path: see address in GET /api/resources.',
      details: { reason: 'path_spelling' },
    });
  return refused('NOT_FOUND', { message: 'What is sold is not called here: see GET /api/resources for where.' });
}

const NOT_PASSED = 'This path does not pass to the backend unless backend.passthrough is configured so.';

function notAllowed(allow: string): Route {
  return refused('METHOD_NOT_ALLOWED', { message: `This address serves ${allow}.`, headers: { allow } });
}

/** The part of a target that has a second name. */
type SecondName = 'path' | 'query';

/** Signs of a path in a query: a slash in any form, or a parameter whose name tells of a path. */
const NAMING_QUERY = /[/\\%]|(?:path|route|ur[il]|page|src|href|file|endpoint|\br)=/i;
const NAMING_PARAMETER = /(?:path|route|ur[il]|page|src|href|file|endpoint|^r)$/;
/** Characters around paths in lists, documents and URLs that are the value of a parameter. */
const AROUND = /["'()[\]{}<>|,;:=?#&]/g;

/**
 * Compiles the search for other names that servers give to path templates. Many serve one handler
 * below a mount, behind a locale or a front controller, with a format suffix, or as the value of a
 * parameter: `/orders/x`, `/en/orders`, `/index.php/orders`, `/orders.json`,
 * `/image?url=%2Forders`. The gateway cannot know which of them the merchant's server has, so none
 * passes unless the configuration names it (contract 7.4). A template without a literal segment has
 * no name that could be told from other paths. `pathPrefix` is put before paths in queries.
 */
function createSecondNames(
  sold: readonly string[],
  excluded: readonly string[],
  pathPrefix: string,
): (path: string, query: string) => SecondName | undefined {
  const literalPaths = (templates: readonly string[]) =>
    templates.map((template) => literalPath(foldedSegments(template))).filter(({ literals }) => literals.length > 0);
  const soldPaths = literalPaths(sold);
  const known = [...soldPaths, ...literalPaths(excluded)];
  const inOrder = createLiteralOrder(known);
  // Routers that compare the start of a path take `/orders-all` for `/orders`.
  const startingWith = createPathTrie(
    soldPaths.flatMap(({ segments, tail }) => {
      const last = segments.at(-1)?.[0] ?? '';
      return tail.length > 0 || last === '' ? [] : [startOf(segments.slice(0, -1), last)];
    }),
    true,
  );
  const isName = (text: string): boolean => inOrder(text) || startingWith(text).length > 0;
  return function secondName(path, query) {
    if (known.length === 0) return undefined;
    if (readings(path).some(isName)) return 'path';
    if (!NAMING_QUERY.test(query)) return undefined;
    return query.split('&').some((pair) => pathsIn(pair).some((text) => isName(`${pathPrefix}/${text}`)))
      ? 'query'
      : undefined;
  };
}

type Segments = readonly (readonly string[])[];

/** The literal segments, and the tail with parameters: a path without its tail is a list. */
function literalPath(segments: Segments) {
  const end = segments.findLastIndex(isLiteral) + 1;
  const literals = segments.filter(isLiteral).flat();
  // Servers of files know the root by this name.
  return { segments, literals: segments.length === 0 ? ['index'] : literals, tail: segments.slice(end) };
}

function startOf(above: Segments, last: string) {
  return { segments: [...above, [last, '']], below: true, owner: last };
}

/** Parts of a pair of a query that may be a path: the value, or the name in front controllers. */
function pathsIn(pair: string): readonly string[] {
  const equals = pair.indexOf('=');
  const name = decodeAll(equals < 0 ? pair : pair.slice(0, equals));
  const value = equals < 0 ? '' : decodeAll(pair.slice(equals + 1));
  const found = [name, value].filter((text) => text.includes('/')).map((text) => text.replaceAll(AROUND, '/'));
  return NAMING_PARAMETER.test(name) ? [...found, value] : found;
}

/**
 * Keeps requests that are not the gateway's own from its routes: `pass` answers those that pass, a
 * refusal is thrown, and a sale in place goes on with its route in `res.locals`.
 */
export function takeRoute(routeOf: (req: RequestLine) => Route, pass: RequestHandler): RequestHandler {
  return function takeRoute(req, res, next) {
    const route = routeOf(req);
    if (route.kind === 'refused') throw route.error;
    if (route.kind === 'pass') return pass(req, res, next);
    if (route.kind === 'in_place') (res.locals as { inPlace?: InPlaceRoute }).inPlace = route.inPlace;
    next();
  };
}

/** Runs the handlers of sales in place for such requests only. */
export function onlyInPlace(router: RequestHandler): RequestHandler {
  return function onlyInPlace(req, res, next) {
    if (inPlaceOf(res) === undefined) next();
    else router(req, res, next);
  };
}

/** The route of a sale in place; undefined for every other request. */
export function inPlaceOf(res: Response): InPlaceRoute | undefined {
  return (res.locals as { inPlace?: InPlaceRoute }).inPlace;
}
