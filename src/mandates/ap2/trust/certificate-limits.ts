/**
 * Limits of certificates (RFC 5280, 4.2) that `node:crypto` does not apply: it checks signatures, names and dates alone. They are looked
 * for in the bytes. What looks like a limit by chance refuses a certificate, and nothing by chance lets one pass. `der`: a certificate
 * that was parsed already.
 */

/** The object identifiers of extensions, 2.5.29, without their last byte. */
const EXTENSION = Buffer.from([0x06, 0x03, 0x55, 0x1d]);
const KEY_USAGE = 0x0f;
const NAMES = 0x11;
const BASIC_CONSTRAINTS = 0x13;
const NAME_CONSTRAINTS = 0x1e;
/** `TRUE`, and the octet string with the extension itself. */
const CRITICAL = Buffer.from([0x01, 0x01, 0xff, 0x04]);
const OCTETS = 0x04;
const BITS = 0x03;
const DIGITAL_SIGNATURE = 0x80;

const UNDERSTOOD: ReadonlySet<number | undefined> = new Set([KEY_USAGE, NAMES, BASIC_CONSTRAINTS]);

/**
 * Whether a certificate has no limit that nobody here applies: no extension is critical but those that are looked at, and an authority is
 * not bound to names (4.2.1.10), critical or not.
 */
export function isUnderstood(der: Buffer): boolean {
  const critical = places(der, CRITICAL).map((at) => extensionAt(der, at - EXTENSION.length - 1));
  return critical.every((extension) => UNDERSTOOD.has(extension)) && extensions(der, NAME_CONSTRAINTS).length === 0;
}

/** Whether the key of a leaf may sign (4.2.1.3): it may where nothing is said. */
export function maySign(der: Buffer): boolean {
  return extensions(der, KEY_USAGE).every((at) => {
    const said = der.subarray(at, at + CRITICAL.length).equals(CRITICAL) ? at + CRITICAL.length - 1 : at;
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
