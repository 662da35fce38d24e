import assert from 'node:assert/strict';
import { BlockList, isIPv6 } from 'node:net';
import { describe, it } from 'node:test';
import { pick } from './manifest.ts';
import { renderComponents } from './rendered.ts';

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
