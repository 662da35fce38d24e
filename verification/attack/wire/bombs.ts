/** Compressed bodies that unpack to very much. */

import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';

/** The unpacked size of the smallest bomb, bytes. */
export const BOMB_BYTES = 48 * 1024 * 1024;

type Bomb = readonly [coding: string, bytes: Buffer];
let made: readonly Bomb[] | undefined;

/**
 * Small bodies that unpack to large ones, with their Content-Encoding; made once, because it takes
 * a second.
 */
export function bombs(): readonly Bomb[] {
  if (made !== undefined) return made;
  const plain = Buffer.alloc(BOMB_BYTES, 0x20);
  const gzip = gzipSync(plain, { level: 1 });
  made = [
    ['gzip', gzip],
    ['x-gzip', gzip],
    ['GZIP', gzip],
    ['deflate', deflateSync(plain, { level: 1 })],
    ['br', brotliCompressSync(plain)],
    ['zstd', zstdCompressSync(plain)],
    ['gzip, gzip', gzipSync(gzip)],
    ['identity, gzip', gzip],
    ['chunked', Buffer.from('{}')],
  ];
  return made;
}
