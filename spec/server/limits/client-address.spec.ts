import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import { clientNetwork, networkOf, wideNetwork } from '../../../src/server/limits/client-address.ts';

const PEER = '10.0.0.1';

function client(proxies: number, forwarded?: string, peer: string | undefined = PEER): string {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
  return clientNetwork(proxies)({ socket: { remoteAddress: peer }, headers } as unknown as IncomingMessage);
}

describe('the network of an address', () => {
  const NETWORKS: readonly (readonly [address: string, network: string | undefined])[] = [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2ff::1', '2001:db8:1:200::/56'],
    ['2001:0DB8:0001:0200:ffff:ffff:ffff:ffff', '2001:db8:1:200::/56'],
    ['2001:db8:1:300::', '2001:db8:1:300::/56'],
    ['fe80::1%eth0', 'fe80:0:0:0::/56'],
    ['::1', '0:0:0:0::/56'],
    ['::', '0:0:0:0::/56'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/56'],
    ['1:2:3:4:5:6:7::', '1:2:3:0::/56'],
    ['', undefined],
    ['shop.example', undefined],
    ['1.2.3', undefined],
    ['1.2.3.256', undefined],
    ['2001:db8::1::2', undefined],
    ['unknown', undefined],
  ];
  for (const [address, network] of NETWORKS)
    it(`of "${address}" is ${network}`, () => assert.equal(networkOf(address), network));
});

describe('the client of a request', () => {
  const CASES: readonly (readonly [rule: string, proxies: number, forwarded: string | undefined, client: string])[] = [
    ['without trusted proxies it is the peer, whatever the header has', 0, '203.0.113.7', PEER],
    ['one proxy: its own entry, the last', 1, '198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['two proxies: the last but one', 2, '6.6.6.6, 203.0.113.7, 10.0.0.2', '203.0.113.7'],
    [
      'entries of the caller come before those of the proxies',
      1,
      '1.1.1.1, 2.2.2.2, 3.3.3.3, 203.0.113.7',
      '203.0.113.7',
    ],
    ['fewer entries than proxies: the furthest there is', 3, '203.0.113.7, 10.0.0.2', '203.0.113.7'],
    ['no header: the peer', 2, undefined, PEER],
    ['an entry that is no address: the last one before it', 2, 'unknown, 10.0.0.2', '10.0.0.2'],
    ['a last entry that is no address: the peer', 2, '203.0.113.7, unknown', PEER],
    ['an empty entry: the last address before it', 2, '203.0.113.7, , 10.0.0.2', '10.0.0.2'],
    ['an entry with a port', 1, '203.0.113.7:4711', '203.0.113.7'],
    ['an IPv6 entry with a port', 1, '[2001:db8::1]:4711', '2001:db8:0:0::/56'],
    ['an IPv6 entry', 1, '2001:db8::1', '2001:db8:0:0::/56'],
    ['a mapped entry', 1, '::ffff:203.0.113.7', '203.0.113.7'],
    ['a quoted entry is no address', 1, '"203.0.113.7"', PEER],
  ];
  for (const [rule, proxies, forwarded, expected] of CASES)
    it(rule, () => assert.equal(client(proxies, forwarded), expected));

  it('in the wide sense is 256 IPv4 addresses, and the same IPv6 network', () => {
    for (const [address, wide] of [
      ['203.0.113.7', '203.0.113.0/24'],
      ['::ffff:203.0.113.200', '203.0.113.0/24'],
      ['2001:db8:1:2ff::1', '2001:db8:1:200::/56'],
    ] as const)
      assert.equal(wideNetwork(() => networkOf(address) ?? '')({} as IncomingMessage), wide);
  });

  it('is "-" where the connection is gone', () => {
    assert.equal(clientNetwork(0)({ socket: {}, headers: {} } as unknown as IncomingMessage), '-');
  });

  it('a header of 32 KiB is read from its end only', () => {
    assert.equal(client(1, `${'6.6.6.6,'.repeat(4_000)} 203.0.113.7`), '203.0.113.7');
  });
});
