import { createHash, X509Certificate } from 'node:crypto';
import type { Json } from '../../../json/types.ts';
import { RecentMap } from '../../../time/recent-map.ts';
import { readPublicKey } from './keys.ts';
import type { VerificationKey } from './trust.ts';

/** The extension's object identifier, 2.5.29.19, as it stands in a certificate. */
const BASIC_CONSTRAINTS = Buffer.from([0x06, 0x03, 0x55, 0x1d, 0x13]);
const CRITICAL = Buffer.from([0x01, 0x01, 0xff]);
const OCTETS = 0x04;
const SEQUENCE = 0x30;
const INTEGER = 0x02;

/**
 * How many authorities may stand between this certificate and a leaf (RFC 5280, 4.2.1.9): infinite
 * where nothing is said, and -1 for what cannot be read. `node:crypto` says whether a certificate
 * is an authority, and not this. `der` is a certificate that was parsed already.
 */
export function pathLength(der: Buffer): number {
  const at = der.indexOf(BASIC_CONSTRAINTS);
  if (at < 0) return Number.POSITIVE_INFINITY;
  let rest = after(der.subarray(at + BASIC_CONSTRAINTS.length), CRITICAL);
  if (rest[0] !== OCTETS || rest[2] !== SEQUENCE) return -1;
  rest = after(rest.subarray(4, 4 + (rest[3] ?? 0)), CRITICAL);
  if (rest.length === 0) return Number.POSITIVE_INFINITY;
  return rest[0] === INTEGER && rest.length === 3 ? (rest[2] ?? -1) : -1;
}

/** `TRUE` as DER has it: of an extension that is critical, and of an authority. */
function after(bytes: Buffer, prefix: Buffer): Buffer {
  return bytes.subarray(0, prefix.length).equals(prefix) ? bytes.subarray(prefix.length) : bytes;
}

/**
 * Limits of certificates (RFC 5280, 4.2) that `node:crypto` does not apply: it checks signatures,
 * names and dates alone. They are looked for in the bytes. What looks like a limit by chance
 * refuses a certificate, and nothing by chance lets one pass. `der`: a certificate that was parsed
 * already.
 */

/** The object identifiers of extensions, 2.5.29, without their last byte. */
const EXTENSION = Buffer.from([0x06, 0x03, 0x55, 0x1d]);
const KEY_USAGE = 0x0f;
const NAMES = 0x11;
const BASIC_CONSTRAINTS_ID = 0x13;
const NAME_CONSTRAINTS = 0x1e;
/** `TRUE`, and the octet string with the extension itself. */
const CRITICAL_OCTETS = Buffer.from([0x01, 0x01, 0xff, 0x04]);
const BITS = 0x03;
const DIGITAL_SIGNATURE = 0x80;

const UNDERSTOOD: ReadonlySet<number | undefined> = new Set([KEY_USAGE, NAMES, BASIC_CONSTRAINTS_ID]);

/**
 * Whether a certificate has no limit that nobody here applies: no extension is critical but those
 * that are looked at, and an authority is not bound to names (4.2.1.10), critical or not.
 */
export function isUnderstood(der: Buffer): boolean {
  const critical = places(der, CRITICAL_OCTETS).map((at) => extensionAt(der, at - EXTENSION.length - 1));
  return critical.every((extension) => UNDERSTOOD.has(extension)) && extensions(der, NAME_CONSTRAINTS).length === 0;
}

/** Whether the key of a leaf may sign (4.2.1.3): it may where nothing is said. */
export function maySign(der: Buffer): boolean {
  return extensions(der, KEY_USAGE).every((at) => {
    const said = der.subarray(at, at + CRITICAL_OCTETS.length).equals(CRITICAL_OCTETS)
      ? at + CRITICAL_OCTETS.length - 1
      : at;
    // An octet string, in it a bit string, in it how many bits are left over, and the bits.
    return der[said] === OCTETS && der[said + 2] === BITS && ((der[said + 5] ?? 0) & DIGITAL_SIGNATURE) !== 0;
  });
}

/** Which extension has its name here; undefined for none. */
function extensionAt(der: Buffer, at: number): number | undefined {
  return at >= 0 && der.subarray(at, at + EXTENSION.length).equals(EXTENSION) ? der[at + EXTENSION.length] : undefined;
}

/** Where each extension of that name goes on behind its name. */
function extensions(der: Buffer, last: number): readonly number[] {
  const name = Buffer.concat([EXTENSION, Buffer.from([last])]);
  return places(der, name).map((at) => at + name.length);
}

function places(der: Buffer, bytes: Buffer): readonly number[] {
  const found: number[] = [];
  for (let at = der.indexOf(bytes); at >= 0; at = der.indexOf(bytes, at + 1)) found.push(at);
  return found;
}

/** Most certificates in the head of a token, and the longest of them, characters. */
const MAX_CHAIN = 4;
const MAX_CERTIFICATE_LENGTH = 8_192;
/** Chains that were found good and are remembered. */
const MAX_REMEMBERED = 100;
const NAMED_CURVES: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1', 'secp256k1']);

interface Remembered {
  readonly key: VerificationKey;
  /** Milliseconds since 1970: the part of time in which every certificate is valid. */
  readonly from: number;
  readonly until: number;
}

/**
 * Keys out of certificate chains (RFC 7515, 4.1.6) that end at one of the operator's roots and
 * whose leaf is for one host. `now`: milliseconds since 1970. Undefined for a chain that is not to
 * be trusted; what a forged one costs is one look for its root.
 */
export function createChainKeys(
  { host, roots }: { readonly host: string; readonly roots: readonly X509Certificate[] },
  now: () => number,
): (x5c: readonly string[]) => VerificationKey | undefined {
  const good = new RecentMap<Remembered>(MAX_REMEMBERED);
  return function keyOfChain(x5c) {
    if (x5c.length === 0 || x5c.length > MAX_CHAIN) return undefined;
    if (x5c.some((text) => text.length > MAX_CERTIFICATE_LENGTH)) return undefined;
    const id = createHash('sha256').update(x5c.join('\n')).digest('base64url');
    const known = good.use(id);
    const found = known ?? verified(x5c, host, roots);
    if (found === undefined) return undefined;
    if (known === undefined) good.add(id, found);
    const at = now();
    return at >= found.from && at < found.until ? found.key : undefined;
  };
}

function verified(x5c: readonly string[], host: string, roots: readonly X509Certificate[]): Remembered | undefined {
  const chain = x5c.map(readCertificate).filter((certificate) => certificate !== undefined);
  const [leaf] = chain;
  const last = chain.at(-1);
  if (chain.length !== x5c.length || leaf === undefined || last === undefined) return undefined;
  // The root may come along; it is trusted because it was configured, never because it came.
  const root = roots.find((known) => known.fingerprint256 === last.fingerprint256 || issued(last, known));
  if (root === undefined) return undefined;
  const whole = root.fingerprint256 === last.fingerprint256 ? chain : [...chain, root];
  // From the root down: nothing is looked at that no trusted key has vouched for.
  for (let above = whole.length - 1; above > 0; above -= 1) {
    const authority = whole[above];
    const below = whole[above - 1];
    if (authority === undefined || below === undefined) return undefined;
    // Between an authority and the leaf stand `above - 1` others (RFC 5280, 4.2.1.9).
    if (!authority.ca || pathLength(authority.raw) < above - 1 || !issued(below, authority)) return undefined;
    // Not asked of the root: the operator took it as it is.
    if (!isUnderstood(below.raw)) return undefined;
  }
  if (whole.length < 2 || leaf.ca || !maySign(leaf.raw)) return undefined;
  // `wildcards: false` keeps one certificate of a hosting company from speaking for all of its customers.
  if (leaf.checkHost(host, { subject: 'never', wildcards: false }) === undefined) return undefined;
  const key = keyOf(leaf);
  if (key === undefined) return undefined;
  return {
    key,
    from: Math.max(...whole.map(({ validFromDate }) => validFromDate.getTime())),
    // The last second of a certificate is a part of its life (RFC 5280, 4.1.2.5).
    until: Math.min(...whole.map(({ validToDate }) => validToDate.getTime())) + 1_000,
  };
}

/** The name, the key usage and the key identifiers fit, and the signature is good. */
function issued(certificate: X509Certificate, authority: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

/** Standard base64 in its one spelling: not the alphabet of URLs, no line breaks. */
function readCertificate(text: string): X509Certificate | undefined {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) return undefined;
  try {
    return new X509Certificate(bytes);
  } catch {
    return undefined;
  }
}

/** Undefined for RSA, and for curves that are not served or that JWKs have no name for. */
function keyOf({ publicKey }: X509Certificate): VerificationKey | undefined {
  const curve = publicKey.asymmetricKeyDetails?.namedCurve;
  if (publicKey.asymmetricKeyType !== 'ed25519' && !(curve !== undefined && NAMED_CURVES.has(curve))) return undefined;
  const reading = readPublicKey(publicKey.export({ format: 'jwk' }) as Json);
  return reading.ok ? reading.key : undefined;
}
