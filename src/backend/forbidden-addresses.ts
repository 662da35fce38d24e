/** Forbids connections to addresses that no backend has, at each resolution of a name. */

import { lookup } from 'node:dns';
import { BlockList, isIPv6, type LookupFunction } from 'node:net';

/** Unspecified, link-local, multicast and reserved networks, and metadata addresses of clouds. */
const IPV4: readonly (readonly [network: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 3],
  ['100.100.100.200', 32],
  ['192.0.0.192', 32],
  ['168.63.129.16', 32],
];
const IPV6: readonly (readonly [network: string, prefix: number])[] = [
  ['::', 128],
  ['fe80::', 10],
  ['ff00::', 8],
  ['fd00:ec2::254', 128],
];
/** The IPv6 prefix of translated IPv4 addresses (RFC 6052); BlockList itself reads `::ffff:`. */
const TRANSLATED = { prefix: '64:ff9b::', bits: 96 };

const forbidden = new BlockList();
for (const [network, prefix] of IPV4) {
  forbidden.addSubnet(network, prefix, 'ipv4');
  forbidden.addSubnet(`${TRANSLATED.prefix}${network}`, TRANSLATED.bits + prefix, 'ipv6');
}
for (const [network, prefix] of IPV6) forbidden.addSubnet(network, prefix, 'ipv6');

/** Whether connections to an IP address, in any spelling, with or without a zone, are forbidden. */
export function isForbiddenAddress(address: string): boolean {
  const [bare = ''] = address.split('%');
  return forbidden.check(bare, isIPv6(bare) ? 'ipv6' : 'ipv4');
}

/** A name has forbidden addresses only. The message is for the log. */
export class ForbiddenAddress extends Error {
  constructor(name: string) {
    super(`${name} has link-local, metadata, unspecified or multicast addresses only`);
    this.name = 'ForbiddenAddress';
  }
}

/**
 * Resolves names for connections and leaves forbidden addresses out. The configuration is checked
 * once, but the addresses of a name may change at every connection.
 */
export function allowedAddresses(resolve: LookupFunction = lookup): LookupFunction {
  return function lookupAllowed(name, options, callback) {
    resolve(name, { ...options, all: true }, (error, found) => {
      // With an error there are no addresses, whatever the types say.
      if (error !== null) {
        callback(error, []);
        return;
      }
      const all = typeof found === 'string' ? [] : found;
      const allowed = all.filter(({ address }) => !isForbiddenAddress(address));
      const [first] = allowed;
      if (first === undefined) callback(new ForbiddenAddress(name), []);
      else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}
