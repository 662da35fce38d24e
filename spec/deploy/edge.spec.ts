import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ROUTES } from '../routes/table.ts';
import { type Manifest, pick } from './manifest.ts';
import { renderComponents } from './rendered.ts';

interface PathMatch {
  readonly type: 'Exact' | 'PathPrefix';
  readonly value: string;
}

interface RouteRule {
  readonly matches: readonly { readonly path: PathMatch }[];
  readonly timeouts?: { readonly request: string };
  readonly backendRefs?: readonly { readonly name: string; readonly port: number }[];
}

interface IngressPath {
  readonly path: string;
  readonly pathType: 'Exact' | 'Prefix';
  readonly backend: { readonly service: { readonly name: string; readonly port: { readonly name: string } } };
}

const allowList = renderComponents('gateway-api', 'ingress');
const website = renderComponents('gateway-api-website');

function rules(objects: readonly Manifest[], name: string): readonly RouteRule[] {
  return (pick(objects, 'HTTPRoute', name).spec as unknown as { readonly rules: readonly RouteRule[] }).rules;
}

/** Whether a prefix stands for a path: whole segments, as Gateway API and Ingress have it. */
function matches({ type, value }: PathMatch, path: string): boolean {
  if (type === 'Exact') return value === path;
  const prefix = value.replace(/\/$/, '');
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** The rule that a path takes: an exact match, else the longest prefix. */
function ruleOf(all: readonly RouteRule[], path: string): RouteRule | undefined {
  const taken = all.flatMap((rule) =>
    rule.matches.filter((match) => matches(match.path, path)).map((match) => ({ rule, path: match.path })),
  );
  const rank = ({ path: { type, value } }: (typeof taken)[number]): number =>
    (type === 'Exact' ? 10_000 : 0) + value.length;
  return taken.sort((a, b) => rank(b) - rank(a))[0]?.rule;
}

const reaches = (all: readonly RouteRule[], path: string): boolean => ruleOf(all, path)?.backendRefs !== undefined;

const agents = ROUTES.filter(({ app }) => app === 'agents');
const inPlace = agents.filter(({ matchedBy }) => matchedBy === 'address');
const ofProtocols = agents.filter(
  ({ audience, matchedBy }) => (audience === 'anyone' || audience === 'agents') && matchedBy !== 'address',
);
const ofOperators = agents.filter(({ audience }) => audience === 'operators');
const ofProbes = agents.filter(({ audience }) => audience === 'probes');
const concrete = (path: string): string => path.replace(/\{[^}]*\}|:\w+/g, 'one');

describe('the routes of the Gateway API', () => {
  const open = rules(allowList, 'merchant-agents');
  const internal = rules(allowList, 'merchant-operators');
  const everything = rules(website, 'merchant-agents');

  it('lead agents to every route of the protocols, and to nothing else', () => {
    assert.ok(ofProtocols.length > 10);
    for (const { path } of ofProtocols) assert.ok(reaches(open, concrete(path)), path);
    for (const { path } of [...ofOperators, ...ofProbes, ...inPlace])
      assert.equal(ruleOf(open, concrete(path)), undefined, path);
    for (const path of ['/any/page', '/metrics', '/drain', '/release', '/api/resourcesx', '/console'])
      assert.equal(ruleOf(open, path), undefined, path);
  });

  it('lead operators to their routes alone', () => {
    assert.ok(ofOperators.length > 3);
    for (const { path } of ofOperators) assert.ok(reaches(internal, path), path);
    for (const { path } of [...ofProtocols, ...ofProbes, ...inPlace])
      assert.equal(ruleOf(internal, concrete(path)), undefined, path);
  });

  it('have no path that is no route', () => {
    for (const { path } of [...open, ...internal].flatMap((rule) => rule.matches))
      assert.ok(
        agents.some((route) => matches(path, concrete(route.path))),
        path.value,
      );
  });

  it('with everything public, keep operators and probes out', () => {
    for (const { path } of [...ofProtocols, ...inPlace]) assert.ok(reaches(everything, concrete(path)), path);
    assert.ok(reaches(everything, '/any/page'));
    for (const { path } of [...ofOperators, ...ofProbes]) assert.ok(!reaches(everything, path), path);
    assert.deepEqual(rules(website, 'merchant-operators'), internal);
  });

  it('cut no stream, and no call before the gateway would end it', () => {
    for (const [all, path] of [
      [open, '/mcp'],
      [internal, '/api/events/stream'],
      [everything, '/mcp'],
      [everything, '/download'],
    ] as const)
      assert.equal(ruleOf(all, path)?.timeouts?.request, '0s', path);
    assert.equal(ruleOf(open, '/api/resources/x/invoke')?.timeouts?.request, `${120 + 60 + 5}s`);
  });

  it('lead to the port of the Service', () => {
    const service = pick(allowList, 'Service', 'merchant-agents');
    for (const { backendRefs = [] } of [...open, ...internal, ...everything])
      for (const { name, port } of backendRefs)
        assert.deepEqual([name, port], [service.metadata.name, service.spec?.ports?.[0]?.port]);
  });
});

describe('the Ingress', () => {
  it('has the public paths of the Gateway API', () => {
    const { rules: hosts } = pick(allowList, 'Ingress', 'merchant-agents').spec as unknown as {
      readonly rules: readonly { readonly http: { readonly paths: readonly IngressPath[] } }[];
    };
    const paths = hosts.flatMap(({ http }) => http.paths);
    assert.deepEqual(
      paths.map(({ path, pathType }) => ({ type: pathType === 'Prefix' ? 'PathPrefix' : 'Exact', value: path })),
      rules(allowList, 'merchant-agents').flatMap((rule) => rule.matches.map(({ path }) => path)),
    );
    for (const { backend } of paths)
      assert.deepEqual(backend, { service: { name: 'merchant-agents', port: { name: 'http' } } });
  });
});
