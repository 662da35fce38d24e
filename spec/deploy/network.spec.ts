import assert from 'node:assert/strict';
import { BlockList, isIPv6 } from 'node:net';
import { describe, it } from 'node:test';
import { ROUTES } from '../routes/table.ts';
import { type Manifest, pick } from './manifest.ts';
import { Development, Production, renderComponents } from './rendered.ts';

interface Peer {
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
  readonly namespaceSelector?: unknown;
  readonly podSelector?: unknown;
}

interface Egress {
  readonly to: readonly Peer[];
  readonly ports: readonly { readonly protocol: string; readonly port: number }[];
}

const policy = pick(renderComponents('network-policy-egress'), 'NetworkPolicy', 'merchant-agents-egress');
const { egress, ...rest } = policy.spec as unknown as {
  readonly egress: readonly Egress[];
};

function within(cidr: string, address: string): boolean {
  const [net = '', length = ''] = cidr.split('/');
  const family = isIPv6(net) ? 'ipv6' : 'ipv4';
  if ((family === 'ipv6') !== isIPv6(address)) return false;
  const block = new BlockList();
  block.addSubnet(net, Number(length), family);
  return block.check(address, family);
}

/** Whether a pod gets out to an address that is no pod's. */
function passes(address: string, port: number): boolean {
  return egress.some(
    ({ to, ports }) =>
      ports.some((allowed) => allowed.protocol === 'TCP' && allowed.port === port) &&
      to.some(
        ({ ipBlock }) =>
          ipBlock !== undefined &&
          within(ipBlock.cidr, address) &&
          !(ipBlock.except ?? []).some((cidr) => within(cidr, address)),
      ),
  );
}

describe('the way out of a pod', () => {
  it('is closed for pods that have the gateway', () => {
    assert.deepEqual(rest, {
      podSelector: { matchLabels: { 'agent-commerce.dev/injected': 'true' } },
      policyTypes: ['Egress'],
    });
  });

  it('leads over TLS to public addresses', () => {
    for (const address of ['93.184.216.34', '172.32.0.1', '100.63.0.1', '2606:2800:220:1::1']) {
      assert.ok(passes(address, 443), address);
      for (const port of [22, 25, 80, 5432, 6379, 8545]) assert.ok(!passes(address, port), `${address}:${port}`);
    }
  });

  it('does not lead to private networks, nor to the metadata services of clouds', () => {
    const metadata = ['169.254.169.254', '100.100.100.200', 'fd00:ec2::254', 'fe80::a9fe:a9fe'];
    for (const address of [...metadata, '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'])
      for (const port of [53, 80, 443, 6379]) assert.ok(!passes(address, port), `${address}:${port}`);
  });

  it('leads to the name service by both protocols', () => {
    const names = egress.filter(({ ports }) => ports.some(({ port }) => port === 53));
    assert.deepEqual(
      names.map(({ ports }) => ports),
      [
        [
          { protocol: 'UDP', port: 53 },
          { protocol: 'TCP', port: 53 },
        ],
      ],
    );
    assert.ok(names.every(({ to }) => to.some(({ podSelector }) => podSelector !== undefined)));
    assert.ok(passes('169.254.20.10', 53));
  });
});

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

for (const { overlay, rendered } of [
  { overlay: 'development', rendered: new Development() },
  { overlay: 'production', rendered: new Production() },
])
  describe(`the access to a pod of the ${overlay} overlay`, () => {
    it('is a Service on a port name that only the gateway declares', () => {
      const [port] = rendered.pick('Service', 'merchant-agents').spec?.ports ?? [];
      assert.equal(port?.targetPort, 'agent-http');
      const declaring = rendered.containers.filter(({ ports = [] }) => ports.some(({ name }) => name === 'agent-http'));
      assert.deepEqual(
        declaring.map(({ name }) => name),
        ['agent-commerce-gateway'],
      );
    });

    it('never exposes the management port by a Service', () => {
      for (const { spec } of rendered.objects.filter(({ kind }) => kind === 'Service')) {
        assert.ok(
          spec?.ports?.every(
            ({ port, targetPort }) => ![port, targetPort].some((p) => p === 8403 || p === 'agent-admin'),
          ),
        );
      }
    });

    it('selects the pods that the component labelled', () => {
      const labels = rendered.pick('Deployment', 'market-shop').spec?.template?.metadata.labels;
      assert.equal(labels?.['agent-commerce.dev/injected'], 'true');
      assert.deepEqual(rendered.pick('Service', 'merchant-agents').spec?.selector, {
        'agent-commerce.dev/injected': 'true',
      });
    });

    it('admits agents on 8402, monitoring on 8403 and no client to the backend, by number', () => {
      assert.deepEqual(rendered.pick('NetworkPolicy', 'merchant-agents').spec, {
        podSelector: { matchLabels: { 'agent-commerce.dev/injected': 'true' } },
        policyTypes: ['Ingress'],
        ingress: [
          { ports: [{ protocol: 'TCP', port: 8402 }] },
          {
            from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
            ports: [{ protocol: 'TCP', port: 8403 }],
          },
        ],
      });
    });

    it('lets a node be drained one pod at a time', () => {
      assert.deepEqual(rendered.pick('PodDisruptionBudget', 'merchant-agents').spec, {
        maxUnavailable: 1,
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
        selector: { matchLabels: { 'agent-commerce.dev/injected': 'true' } },
      });
    });

    it('has an account without a token', () => {
      assert.equal(rendered.pick('ServiceAccount', 'merchant-agents').automountServiceAccountToken, false);
    });
  });
