/** Reads URLs of the configuration and judges their hosts, so that none is a forbidden address. */

import { BlockList, isIPv4 } from 'node:net';
import { isForbiddenAddress } from '../../backend/forbidden-addresses.ts';

/** `forbidden`: link-local, cloud metadata, unspecified and multicast addresses. */
type HostKind = 'loopback' | 'forbidden' | 'other';

/** The problem of a `forbidden` host. */
export const FORBIDDEN_HOST = 'must not name a link-local, metadata, unspecified or multicast address';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** IPv4 addresses as IPv6: forbidden in a URL, while an answer of DNS may have them (RFC 6052). */
const translated = new BlockList();
translated.addSubnet('64:ff9b::', 96, 'ipv6');

const METADATA_NAMES: ReadonlySet<string> = new Set(['metadata', 'metadata.google.internal', 'instance-data']);

/** The kind of a URL's host, after the URL parser has normalised other spellings of addresses. */
export function hostKind(url: URL): HostKind {
  const host = url.hostname.toLowerCase().replace(/\.$/, '');
  if (host === 'localhost') return 'loopback';
  if (METADATA_NAMES.has(host)) return 'forbidden';
  if (host.startsWith('[')) {
    const address = host.slice(1, -1);
    // An IPv4 address written as IPv6 only serves to pass a check.
    if (address.startsWith('::ffff:')) return 'forbidden';
    if (loopback.check(address, 'ipv6')) return 'loopback';
    return isForbiddenAddress(address) || translated.check(address, 'ipv6') ? 'forbidden' : 'other';
  }
  if (!isIPv4(host)) return 'other';
  return loopback.check(host, 'ipv4') ? 'loopback' : isForbiddenAddress(host) ? 'forbidden' : 'other';
}

type UrlReading = { readonly ok: true; readonly url: URL } | { readonly ok: false; readonly message: string };

/**
 * An absolute http or https URL. `plain`: without credentials, query and fragment (`http://@host`
 * and `?` alone included).
 */
export function readHttpUrl(text: string, plain: boolean): UrlReading {
  // The URL parser drops tabs and newlines and turns backslashes into slashes, so the written URL
  // would differ from the called one.
  if (/[^\x21-\x7e]|[\\{}]/.test(text))
    return { ok: false, message: 'must not have spaces, backslashes, braces or non-ASCII characters' };
  if (!/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text))
    return { ok: false, message: 'must be an absolute http:// or https:// URL' };
  if (plain) {
    const authority = text.split('/')[2] ?? '';
    if (authority.includes('@')) return { ok: false, message: 'must not have credentials in the URL' };
    if (/[?#]/.test(text)) return { ok: false, message: 'must not have a query or a fragment' };
  }
  return { ok: true, url: new URL(text) };
}

/** Why a link may not be published, or undefined. */
export function publicUrlFault(text: string): string | undefined {
  const reading = readHttpUrl(text, false);
  if (!reading.ok) return reading.message;
  const { username, password } = reading.url;
  return username === '' && password === '' ? undefined : 'must not have credentials in the URL';
}

/** True for a URL whose host is this machine or pod. */
export function isLoopbackUrl(text: string): boolean {
  return URL.canParse(text) && hostKind(new URL(text)) === 'loopback';
}
