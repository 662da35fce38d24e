/** Compressed bodies that unpack to very much. */

import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';

/** What the smallest of the bombs unpacks to, bytes. */
export const BOMB_BYTES = 48 * 1024 * 1024;

type Bomb = readonly [coding: string, bytes: Buffer];
let made: readonly Bomb[] | undefined;

/**
 * Small bodies that would be large ones, with the Content-Encoding that says so; made once, for it
 * takes a second.
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
