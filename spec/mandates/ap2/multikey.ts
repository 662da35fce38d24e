import type { KeyObject } from 'node:crypto';

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/**
 * Writes a key of P-256 or secp256k1, or any bytes, as a Multikey text: the way back of what the
 * gateway reads.
 */
export function multikeyOf(key: KeyObject | Buffer): string {
  let number = BigInt(`0x${(Buffer.isBuffer(key) ? key : coded(key)).toString('hex')}`);
  let text = '';
  for (; number > 0n; number /= 58n) text = (BASE58[Number(number % 58n)] ?? '') + text;
  return `z${text}`;
}

function coded(key: KeyObject): Buffer {
  const { crv, x = '', y = '' } = key.export({ format: 'jwk' });
  const odd = (Buffer.from(y, 'base64url').at(-1) ?? 0) % 2;
  const code = crv === 'P-256' ? [0x80, 0x24] : [0xe7, 0x01];
  return Buffer.concat([Buffer.from([...code, 2 + odd]), Buffer.from(x, 'base64url')]);
}
