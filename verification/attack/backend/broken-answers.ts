/** Answers of a backend that are no HTTP. */

import {
  answer,
  broken,
  CANARY,
  CHUNKED,
  chunk,
  cut,
  ends,
  flood,
  HELLO,
  type HostileAnswer,
  late,
  OK,
  trickle,
} from './hostile-answer.ts';
import { CAP_BYTES } from './stage.ts';

/** Heads that no client may accept. */
export const HEADS: readonly HostileAnswer[] = [
  answer('HTTP/0.9', ends(`<html>${CANARY}</html>`), broken),
  answer('a status of two digits', `HTTP/1.1 20 OK\r\n${HELLO}`, broken),
  answer('a status of letters', `HTTP/1.1 2OO OK\r\n${HELLO}`, broken),
  answer('another protocol', `SSH-2.0-${CANARY}\r\n`, broken),
  answer('TLS on the plain port', '\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x03', broken),
  answer('NUL in a header', `${OK}x-nul: a\0${CANARY}\r\n${HELLO}`, broken),
  answer('a control byte in a type', `${OK}content-type: text/plain\x01${CANARY}\r\n${HELLO}`, broken),
  answer('a folded header', `${OK}x-folded: a\r\n payment-response: ${CANARY}\r\n${HELLO}`, broken),
  answer('space before a colon', `${OK}payment-response : ${CANARY}\r\n${HELLO}`, broken),
  answer('a header without a name', `${OK}: ${CANARY}\r\n${HELLO}`, broken),
  answer('a head of 20 KB', `${OK}x-large: ${CANARY.repeat(2_000)}\r\n${HELLO}`, broken),
  answer('3,000 headers', `${OK}${`x: ${CANARY}\r\n`.repeat(3_000)}${HELLO}`, broken),
  answer('a head that never ends', trickle(`${OK}x-slow: ${CANARY}`), late),
  answer('half a head', ends(`${OK}x-half: ${CANARY}`), broken),
  answer('two lengths', `${OK}content-length: 5\r\ncontent-length: 6\r\n\r\nhello!`, broken),
  answer('the same length twice', `${OK}content-length: 5\r\n${HELLO}`, broken),
  answer('a list of lengths', `${OK}content-length: 5, 5\r\n\r\nhello`, broken),
  answer('a length with a sign', `${OK}content-length: +5\r\n\r\nhello`, broken),
  answer('a hexadecimal length', `${OK}content-length: 0x5\r\n\r\nhello`, broken),
  answer('a negative length', `${OK}content-length: -5\r\n\r\nhello`, broken),
  answer(
    'a length and chunks',
    `${OK}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n${chunk('hello')}0\r\n\r\n`,
    broken,
  ),
  answer('a length above the cap', `${OK}content-length: ${CAP_BYTES + 1}\r\n\r\nx`, {
    kind: 'failed',
    reason: 'response_too_large',
  }),
  answer('a length beyond any number', `${OK}content-length: 99999999999999999999999\r\n\r\nx`, broken),
];

/** Bodies that break off, or never end. */
export const BODIES: readonly HostileAnswer[] = [
  answer('a body shorter than its length', ends(`${OK}content-length: 50\r\n\r\nhello`), cut),
  answer('a chunk size that is none', `${CHUNKED}${chunk('hello')}zz\r\n${CANARY}`, cut),
  answer('a chunk size beyond any number', `${CHUNKED}${chunk('hello')}fffffffffffffffffff\r\n${CANARY}`, cut),
  answer('chunks without their end', ends(`${CHUNKED}${chunk('hello')}`), cut),
  answer(
    'a reset in the middle',
    (socket) => void socket.write(`${OK}content-length: 50\r\n\r\nhello`, () => socket.resetAndDestroy()),
    cut,
  ),
  answer('an endless body', flood(`${OK}connection: close\r\n\r\n`, 'x'.repeat(1_000)), {
    kind: 'cut',
    reason: 'response_too_large',
  }),
  answer('a byte at a time', trickle(`${OK}content-length: 900\r\n\r\n`), { kind: 'cut', reason: 'timeout' }),
  answer('a chunk extension without end', trickle(`${CHUNKED}5;a=`), { kind: 'cut', reason: 'timeout' }),
  answer('silence', () => undefined, late),
  answer('a reset before the head', (socket) => void socket.resetAndDestroy(), broken),
  answer('an end before the head', (socket) => void socket.end(), broken),
];
