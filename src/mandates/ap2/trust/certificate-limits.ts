/**
 * Limits of certificates (RFC 5280, 4.2) that `node:crypto` does not apply; `x5c.ts` asks for them.
 * They are searched in the bytes: what looks like a limit by chance refuses a certificate, and
 * nothing by chance lets one pass. `der` is always a certificate that was parsed already.
 */

/** The object identifiers of extensions, 2.5.29, without their last byte. */
const EXTENSION = Buffer.from([0x06, 0x03, 0x55, 0x1d]);
const KEY_USAGE = 0x0f;
const NAMES = 0x11;
const BASIC_CONSTRAINTS = 0x13;
const NAME_CONSTRAINTS = 0x1e;
const UNDERSTOOD: ReadonlySet<number | undefined> = new Set([KEY_USAGE, NAMES, BASIC_CONSTRAINTS]);

const INTEGER = 0x02;
const BITS = 0x03;
const OCTETS = 0x04;
const SEQUENCE = 0x30;
/** `TRUE` in DER: of a critical extension, and of an authority. */
const TRUE = Buffer.from([0x01, 0x01, 0xff]);
/** `TRUE`, and the octet string with the extension itself. */
const CRITICAL = Buffer.from([...TRUE, OCTETS]);
const DIGITAL_SIGNATURE = 0x80;

/**
 * How many authorities may stand between this certificate and a leaf (4.2.1.9): infinite without a
 * bound, and -1 for what cannot be read.
 */
export function pathLength(der: Buffer): number {
  const [at] = extensions(der, BASIC_CONSTRAINTS);
  if (at === undefined) return Number.POSITIVE_INFINITY;
  let rest = after(der.subarray(at), TRUE);
  if (rest[0] !== OCTETS || rest[2] !== SEQUENCE) return -1;
  rest = after(rest.subarray(4, 4 + (rest[3] ?? 0)), TRUE);
  if (rest.length === 0) return Number.POSITIVE_INFINITY;
  return rest[0] === INTEGER && rest.length === 3 ? (rest[2] ?? -1) : -1;
}

/**
 * Whether every limit of a certificate is known here: no other extension is critical, and an
 * authority is not bound to names (4.2.1.10), critical or not.
 */
export function isUnderstood(der: Buffer): boolean {
  const critical = offsets(der, CRITICAL).map((at) => extensionAt(der, at - EXTENSION.length - 1));
  return critical.every((extension) => UNDERSTOOD.has(extension)) && extensions(der, NAME_CONSTRAINTS).length === 0;
}

/** Whether the key of a leaf may sign (4.2.1.3): it may without a key usage. */
export function maySign(der: Buffer): boolean {
  return extensions(der, KEY_USAGE).every((at) => {
    const octets = der.subarray(at, at + CRITICAL.length).equals(CRITICAL) ? at + CRITICAL.length - 1 : at;
    // An octet string, in it a bit string, in it the number of spare bits, and the bits.
    return der[octets] === OCTETS && der[octets + 2] === BITS && ((der[octets + 5] ?? 0) & DIGITAL_SIGNATURE) !== 0;
  });
}

function after(bytes: Buffer, prefix: Buffer): Buffer {
  return bytes.subarray(0, prefix.length).equals(prefix) ? bytes.subarray(prefix.length) : bytes;
}

/** The last byte of the extension's identifier at this offset; undefined when none stands there. */
function extensionAt(der: Buffer, at: number): number | undefined {
  return at >= 0 && der.subarray(at, at + EXTENSION.length).equals(EXTENSION) ? der[at + EXTENSION.length] : undefined;
}

/** The offsets behind each identifier of this extension. */
function extensions(der: Buffer, last: number): readonly number[] {
  const name = Buffer.concat([EXTENSION, Buffer.from([last])]);
  return offsets(der, name).map((at) => at + name.length);
}

function offsets(der: Buffer, bytes: Buffer): readonly number[] {
  const found: number[] = [];
  for (let at = der.indexOf(bytes); at >= 0; at = der.indexOf(bytes, at + 1)) found.push(at);
  return found;
}
