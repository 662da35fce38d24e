/** The extension's object identifier, 2.5.29.19, as it stands in a certificate. */
const BASIC_CONSTRAINTS = Buffer.from([0x06, 0x03, 0x55, 0x1d, 0x13]);
const CRITICAL = Buffer.from([0x01, 0x01, 0xff]);
const OCTETS = 0x04;
const SEQUENCE = 0x30;
const INTEGER = 0x02;

/**
 * How many authorities may stand between this certificate and a leaf (RFC 5280, 4.2.1.9): infinite where nothing is said, and -1 for what
 * cannot be read. `node:crypto` says whether a certificate is an authority, and not this. `der` is a certificate that was parsed already.
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
