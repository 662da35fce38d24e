/** Names the client of a request for rate limits: its network, seen through trusted proxies. */

import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';

/** Names the client that a request is counted for. */
export type ClientOf = (req: IncomingMessage) => string;

/** Groups of an IPv6 address, 16 bits each. */
const GROUPS = 8;
/** The client of requests whose connection is gone. */
const UNKNOWN = '-';
/** An address, with the port that some proxies add. */
const WITH_PORT = /^(?:([^:[\]]+)|\[([^[\]]+)\])(?::\d{1,5})?$/;

/**
 * The client's network: an IPv4 address, or the first 56 bits of an IPv6 address, which one
 * household or server has. `trustProxy`: how many proxies before the gateway are trusted to append
 * the address that called them to X-Forwarded-For. The list is read from its end; an entry that is
 * no address ends the reading, and the last address read is the client.
 */
export function clientNetwork(trustProxy: number): ClientOf {
  return clientBy(trustProxy, networkOf);
}

/** The client's whole address, found in the same way; the backend of a passed request gets it. */
export function clientAddress(trustProxy: number): ClientOf {
  return clientBy(trustProxy, addressOf);
}

function clientBy(trustProxy: number, read: (address: string) => string | undefined): ClientOf {
  return function clientOf(req) {
    const peer = read(req.socket.remoteAddress ?? '') ?? UNKNOWN;
    return trustProxy === 0 ? peer : forwardedFor(req.headers['x-forwarded-for'], trustProxy, peer, read);
  };
}

/**
 * Widens the network of `clientOf` to 256 IPv4 addresses, which one subscriber may hold: a client
 * that causes costs for others must not count once for each of its addresses.
 */
export function wideNetwork(clientOf: ClientOf): ClientOf {
  return function wideNetworkOf(req) {
    const client = clientOf(req);
    return isIPv4(client) ? `${client.slice(0, client.lastIndexOf('.'))}.0/24` : client;
  };
}

/** Walks the list from its end, written by the nearest proxy; the caller's entries are not read. */
function forwardedFor(
  field: string | string[] | undefined,
  proxies: number,
  peer: string,
  read: (address: string) => string | undefined,
): string {
  let client = peer;
  let rest = Array.isArray(field) ? field.join(',') : field;
  for (let seen = 0; seen < proxies && rest !== undefined; seen += 1) {
    const comma = rest.lastIndexOf(',');
    const entry = rest.slice(comma + 1).trim();
    const bare = WITH_PORT.exec(entry);
    const named = read(bare?.[1] ?? bare?.[2] ?? entry);
    if (named === undefined) return client;
    client = named;
    rest = comma === -1 ? undefined : rest.slice(0, comma);
  }
  return client;
}

/** The network of an address; undefined for other texts. An IPv4-mapped address counts as IPv4. */
export function networkOf(address: string): string | undefined {
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return undefined;
  const groups = groupsOf(address);
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = groups;
  if (a + b + c + d + e === 0 && f === 0xffff) return [g >> 8, g & 0xff, h >> 8, h & 0xff].join('.');
  return `${a.toString(16)}:${b.toString(16)}:${c.toString(16)}:${(d & 0xff00).toString(16)}::/56`;
}

/** An address, as IPv4 where it is mapped to IPv6; undefined for any other text. */
function addressOf(address: string): string | undefined {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1] ?? address;
  return isIPv4(mapped) || isIPv6(mapped) ? mapped : undefined;
}

/** The eight groups of a well-formed IPv6 address. */
function groupsOf(address: string): readonly number[] {
  const zone = address.indexOf('%');
  const plain = zone === -1 ? address : address.slice(0, zone);
  const gap = plain.indexOf('::');
  if (gap === -1) return partOf(plain);
  const groups = partOf(plain.slice(0, gap));
  const tail = partOf(plain.slice(gap + 2));
  while (groups.length + tail.length < GROUPS) groups.push(0);
  return groups.concat(tail);
}

/** Groups of one side of `::`; the last one may be a dotted IPv4 address, which is two. */
function partOf(text: string): number[] {
  const groups: number[] = [];
  if (text === '') return groups;
  for (const group of text.split(':')) {
    if (group.includes('.')) {
      const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
      groups.push((a << 8) | b, (c << 8) | d);
    } else groups.push(Number.parseInt(group, 16));
  }
  return groups;
}
