import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it, mock } from 'node:test';
import express from 'express';
import { OPERATION_RULES, OPERATIONS } from '../../src/checkouts/operations.ts';
import { ROUTES, type Route } from './table.ts';
import { openRoutes, type RouteWorld } from './world.ts';

const APPS = ['agents', 'management'] as const;

/** A registered route, as Express keeps it. */
interface Registered {
  readonly path: string | RegExp | readonly (string | RegExp)[];
  readonly methods: Readonly<Record<string, boolean>>;
}
type Handler = ((...parts: never) => unknown) & { readonly stack?: readonly Layer[] };
interface Layer {
  readonly name: string;
  readonly handle: Handler;
  readonly route?: Registered;
}

/** The apps, with the routes and the layers that are registered while they open. */
interface Opened {
  readonly world: RouteWorld;
  readonly registered: readonly Registered[];
  readonly layers: Readonly<Record<Route['app'], readonly Layer[]>>;
}

/** Opens the apps, and notes every router and route that is made meanwhile. */
async function opening(): Promise<Opened> {
  const router = express.Router.prototype as {
    route(path: string): Registered;
    use(...given: unknown[]): unknown;
    readonly stack: readonly Layer[];
  };
  const { route, use } = router;
  const registered: Registered[] = [];
  const stacks = new Set<readonly Layer[]>();
  const notedRoutes = mock.method(router, 'route', function note(this: typeof router, path: string) {
    const made = route.call(this, path);
    registered.push(made);
    return made;
  });
  const notedRouters = mock.method(router, 'use', function note(this: typeof router, ...given: unknown[]) {
    stacks.add(this.stack);
    return use.apply(this, given);
  });
  try {
    const world = await openRoutes();
    const management = world.management.router.stack as unknown as readonly Layer[];
    const identifies = (stack: readonly Layer[]): boolean => stack.some(({ name }) => name.startsWith('identify'));
    // The agents' app holds one router, which a reload replaces.
    const [agents = assert.fail('no routes'), ...others] = [...stacks].filter(
      (stack) => stack !== management && identifies(stack),
    );
    assert.deepEqual(others, []);
    return { world, registered, layers: { agents, management } };
  } finally {
    notedRoutes.mock.restore();
    notedRouters.mock.restore();
  }
}

/** The routes of an app and of the routers that are mounted openly in it. */
function routesIn(layers: readonly Layer[]): readonly Registered[] {
  return layers.flatMap(({ route, handle }) => (route === undefined ? routesIn(handle.stack ?? []) : [route]));
}

/** What ends a path for all methods, and serves none of the table. */
const isForAll = ({ methods }: Registered): boolean => methods['_all'] === true || methods['propfind'] === true;
const pathsOf = ({ path }: Registered): readonly string[] => [path].flat().map(patternOf);
const patternOf = (path: string | RegExp): string =>
  typeof path === 'string'
    ? path
    : path.source
        .slice(1, -1)
        .replaceAll('\\/', '/')
        .replace(/\(\?<(\w+)>[^)]*\)/g, ':$1');
const sorted = (lines: readonly string[]): readonly string[] => [...new Set(lines)].sort();

/** `METHOD path` of what is served. Express answers a HEAD by the handler of GET. */
const served = (routes: readonly Registered[]): readonly string[] =>
  sorted(
    routes
      .filter((route) => !isForAll(route))
      .flatMap((route) =>
        Object.keys(route.methods)
          .filter((method) => method !== 'head')
          .flatMap((method) => pathsOf(route).map((path) => `${method.toUpperCase()} ${path}`)),
      ),
  );

const rowsOf = (app: Route['app']): readonly Route[] =>
  ROUTES.filter((route) => route.app === app && route.matchedBy === 'express');

/** What stands between the routes and answers none: a name that is missing here may be a route. */
const MIDDLEWARE: Readonly<Record<Route['app'], readonly string[]>> = {
  agents: [
    'identify',
    'keepAccessRecord',
    // pino-http's.
    'result',
    'countUntilClosedMiddleware',
    'takeRoute',
    'checkFraming',
    'belowPath',
    'checkHost',
    'belowPath',
    'checkOrigin',
    'onlyInPlace',
    'refuseEncodedSlash',
    'router',
    'serveCheckout',
    'answerCheckoutFailure',
    'belowPath',
    'noRoute',
    'errorMiddleware',
  ],
  management: ['identify', 'checkFraming', 'router', 'router', 'noRoute', 'errorMiddleware'],
};

describe('the table of routes is complete', () => {
  it('has every route that is registered on a router, and no other', async () => {
    const { world, registered, layers } = await opening();
    try {
      const management = routesIn(layers.management);
      const agents = registered.filter((route) => !management.includes(route));
      for (const [app, routes] of Object.entries({ agents, management }) as [Route['app'], Registered[]][]) {
        const rows = rowsOf(app);
        assert.deepEqual(served(routes), sorted(rows.map(({ method, pattern }) => `${method} ${pattern}`)));
        assert.deepEqual(sorted(routes.flatMap(pathsOf)), sorted(rows.map(({ pattern }) => pattern)));
      }
    } finally {
      await world.close();
    }
  });

  it('has every operation of the checkout service, whose adapter matches paths itself', () => {
    const rows = ROUTES.filter(({ matchedBy }) => matchedBy === 'checkout adapter');
    const operations = OPERATIONS.map((operation) => OPERATION_RULES[operation]);
    assert.deepEqual(
      sorted(rows.map(({ method, pattern }) => `${method} ${pattern}`)),
      sorted(operations.map(({ method, path }) => `${method} /acp${path}`)),
    );
  });

  it('has every address at which something is sold in place', async () => {
    const world = await openRoutes();
    try {
      const { merchant, resources } = world.config;
      const addresses = resources.flatMap(({ address, backend: { method } }) =>
        address === undefined ? [] : [`${method} ${address.slice(merchant.publicBaseUrl.length)}`],
      );
      const rows = ROUTES.filter(({ matchedBy }) => matchedBy === 'address');
      assert.deepEqual(sorted(rows.map(({ method, pattern }) => `${method} ${pattern}`)), sorted(addresses));
    } finally {
      await world.close();
    }
  });

  it('misses no middleware that could answer a path by itself', async () => {
    const { world, layers } = await opening();
    try {
      for (const app of APPS) {
        const names = layers[app].flatMap(({ name, route }) => (route === undefined ? name.split(' ') : []));
        assert.deepEqual(names, MIDDLEWARE[app]);
      }
    } finally {
      await world.close();
    }
  });

  it('has every route of specification 1, for the same audience', () => {
    const specification = readFileSync(new URL('../../docs/specification.md', import.meta.url), 'utf8');
    const [, section = ''] = specification.split('| Route | Audience | Auth |');
    const rows = [...(section.split('\n\n')[0] ?? '').matchAll(/^\| ([^|]*\/[^|]*) \| (\w+) \|/gm)];
    assert.ok(rows.length >= 9);
    for (const [, names = '', audience] of rows)
      for (const name of names.split(', ')) {
        const path = name
          .replace(/^[A-Z]+ /, '')
          .replace('{id}', ':id')
          .replace('...', '');
        const found = ROUTES.filter(({ pattern }) =>
          path.endsWith('/') ? pattern.startsWith(path) : pattern === path,
        );
        assert.ok(found.length > 0, name);
        for (const row of found) assert.equal(row.audience, audience, name);
      }
  });
});
