const SPELLING = /^[A-Za-z0-9_-]*$/;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * Reads the one spelling that base64url has for some bytes (RFC 4648, section 5, without padding): its own alphabet, no length that no
 * bytes have, and zeros in the bits that are left over. `Buffer.from` takes padding, line breaks, the other alphabet and any rest, so
 * that one token would have many names (ap2 7.6, step 2). Undefined for anything else.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const rest = text.length % 4;
  if (rest === 1 || !SPELLING.test(text)) return undefined;
  if (rest !== 0) {
    const unused = rest === 2 ? 0b1111 : 0b11;
    if ((ALPHABET.indexOf(text.charAt(text.length - 1)) & unused) !== 0) return undefined;
  }
  return Buffer.from(text, 'base64url');
}
