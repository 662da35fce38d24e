/** Cases of body lengths, for the framing spec. */

import {
  chunked,
  ECHO,
  EMPTY,
  echo,
  type FramingCase,
  good,
  HOST,
  head,
  JSON_TYPE,
  marked,
  SMUGGLED,
} from './framing-case.ts';

const BODY = marked('a');
const LENGTH = `Content-Length: ${BODY.length}`;
const CHUNKED = 'Transfer-Encoding: chunked';
const REFUSED = { answered: [400], leaves: 'closed' } as const;
const SERVED = { answered: [200], meant: ['a'], leaves: 'open' } as const;

/** A call whose length `lines` declare, with another call behind its body. */
const declared = (...lines: readonly string[]): string => echo(lines, BODY + SMUGGLED);
const coded = (...lines: readonly string[]): string => echo(lines, chunked(BODY));
const pieces = (text: string): string => echo([CHUNKED], text);

/** Declarations of the length of a body: RFC 9112, sections 6 and 7. */
export const LENGTH_CASES: readonly FramingCase[] = [
  { name: 'Content-Length before Transfer-Encoding', sends: echo([LENGTH, CHUNKED], chunked(BODY)), ...REFUSED },
  { name: 'Transfer-Encoding before Content-Length', sends: echo([CHUNKED, LENGTH], chunked(BODY)), ...REFUSED },
  {
    name: 'CL.TE with a call behind the last chunk',
    sends: echo([`Content-Length: ${SMUGGLED.length + 5}`, CHUNKED], `0\r\n\r\n${SMUGGLED}`),
    ...REFUSED,
  },
  {
    name: 'TE.CL with a call inside the chunk',
    sends: echo([CHUNKED, 'Content-Length: 4'], chunked(SMUGGLED)),
    ...REFUSED,
  },
  { name: 'Content-Length twice, the same', sends: declared(LENGTH, LENGTH), ...REFUSED },
  { name: 'Content-Length twice, different', sends: declared(LENGTH, 'Content-Length: 3'), ...REFUSED },
  { name: 'Content-Length as a list', sends: declared(`${LENGTH}, ${BODY.length}`), ...REFUSED },
  { name: 'Content-Length +', sends: declared(`Content-Length: +${BODY.length}`), ...REFUSED },
  { name: 'Content-Length negative', sends: declared('Content-Length: -1'), ...REFUSED },
  { name: 'Content-Length hexadecimal', sends: declared('Content-Length: 0xc'), ...REFUSED },
  { name: 'Content-Length with a space inside', sends: declared('Content-Length: 1 2'), ...REFUSED },
  { name: 'Content-Length with a fraction', sends: declared('Content-Length: 12.0'), ...REFUSED },
  { name: 'Content-Length beyond 64 bits', sends: declared('Content-Length: 18446744073709551628'), ...REFUSED },
  {
    name: 'Content-Length of 2^53',
    sends: echo(['Content-Length: 9007199254740992'], BODY),
    answered: [413],
    leaves: 'closed',
  },
  { name: 'Content-Length with zeros before it', sends: echo([`Content-Length: 000${BODY.length}`], BODY), ...SERVED },
  {
    name: 'Content-Length with spaces around it',
    sends: echo([`Content-Length:  \t${BODY.length} \t`], BODY),
    ...SERVED,
  },
  { name: 'Content-Length empty', sends: declared('Content-Length:'), ...REFUSED },
  {
    name: 'Content-Length larger than the body, which then ends',
    sends: echo(['Content-Length: 99'], BODY),
    finishes: true,
    ...REFUSED,
  },
  {
    name: 'Content-Length smaller than the body',
    sends: echo([`Content-Length: ${BODY.length}`], `${BODY}{}`),
    answered: [200],
    meant: ['a'],
    leaves: 'closed',
  },
  { name: 'no length, with a body', sends: echo([], BODY), answered: [200], meant: [EMPTY], leaves: 'closed' },
  { name: 'Transfer-Encoding: chunked', sends: coded(CHUNKED), ...SERVED },
  { name: 'Transfer-Encoding: Chunked', sends: coded('Transfer-Encoding: Chunked'), ...SERVED },
  { name: 'Transfer-Encoding: xchunked', sends: coded('Transfer-Encoding: xchunked'), ...REFUSED },
  { name: 'Transfer-Encoding: chunkedx', sends: coded('Transfer-Encoding: chunkedx'), ...REFUSED },
  { name: 'Transfer-Encoding: gzip, chunked', sends: coded('Transfer-Encoding: gzip, chunked'), ...REFUSED },
  { name: 'Transfer-Encoding: chunked, gzip', sends: coded('Transfer-Encoding: chunked, gzip'), ...REFUSED },
  { name: 'Transfer-Encoding: chunked, chunked', sends: coded('Transfer-Encoding: chunked, chunked'), ...REFUSED },
  { name: 'Transfer-Encoding: identity', sends: declared('Transfer-Encoding: identity', LENGTH), ...REFUSED },
  { name: 'Transfer-Encoding: chunked, identity', sends: coded('Transfer-Encoding: chunked, identity'), ...REFUSED },
  { name: 'Transfer-Encoding twice', sends: coded(CHUNKED, CHUNKED), ...REFUSED },
  {
    name: 'Transfer-Encoding: chunked beside one that is unknown',
    sends: coded(CHUNKED, 'Transfer-Encoding: cow'),
    ...REFUSED,
  },
  { name: 'Transfer-Encoding with a parameter', sends: coded('Transfer-Encoding: chunked;q=1'), ...REFUSED },
  { name: 'Transfer-Encoding in quotes', sends: coded('Transfer-Encoding: "chunked"'), ...REFUSED },
  { name: 'Transfer-Encoding with a tab', sends: coded('Transfer-Encoding:\tchunked'), ...SERVED },
  { name: 'Transfer-Encoding with a vertical tab', sends: coded('Transfer-Encoding: \x0bchunked'), ...REFUSED },
  { name: 'Transfer-Encoding empty beside a length', sends: declared('Transfer-Encoding:', LENGTH), ...REFUSED },
  { name: 'Transfer_Encoding is another name', sends: echo([LENGTH, 'Transfer_Encoding: chunked'], BODY), ...SERVED },
  {
    name: 'Transfer-Encoding in HTTP/1.0',
    sends: head(ECHO.replace('1.1', '1.0'), HOST, JSON_TYPE, CHUNKED) + chunked(BODY),
    ...REFUSED,
  },
  { name: 'a chunk extension', sends: pieces(`${BODY.length.toString(16)};a=b\r\n${BODY}\r\n0\r\n\r\n`), ...SERVED },
  {
    name: 'a chunk extension of 20 KB',
    sends: pieces(`${BODY.length.toString(16)};a=${'b'.repeat(20_000)}\r\n${BODY}\r\n0\r\n\r\n`),
    answered: [400],
    leaves: 'closed',
  },
  {
    name: 'a chunk extension with a bare line feed',
    sends: pieces(`${BODY.length.toString(16)};\n${BODY}\r\n0\r\n\r\n`),
    ...REFUSED,
  },
  {
    name: 'chunk lines that end with a line feed',
    sends: pieces(`${BODY.length.toString(16)}\n${BODY}\n0\n\n`),
    ...REFUSED,
  },
  {
    name: 'a chunk whose line ends with a carriage return',
    sends: pieces(`${BODY.length.toString(16)}\r${BODY}\r0\r\r`),
    ...REFUSED,
  },
  { name: 'a chunk size that is negative', sends: pieces(`-1\r\n${BODY}\r\n0\r\n\r\n`), ...REFUSED },
  { name: 'a chunk size with 0x', sends: pieces(`0xc\r\n${BODY}\r\n0\r\n\r\n`), ...REFUSED },
  {
    name: 'a chunk size with a space before it',
    sends: pieces(` ${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`),
    ...REFUSED,
  },
  { name: 'a chunk size beyond 64 bits', sends: pieces(`1${'0'.repeat(15)}c\r\n${BODY}\r\n0\r\n\r\n`), ...REFUSED },
  { name: 'a chunk size of 2^60', sends: pieces(`1000000000000000\r\n${BODY}`), finishes: true, ...REFUSED },
  { name: 'a chunk longer than its size', sends: pieces(`2\r\n${BODY}\r\n0\r\n\r\n`), ...REFUSED },
  {
    name: 'a chunk without line end behind it',
    sends: pieces(`${BODY.length.toString(16)}\r\n${BODY}0\r\n\r\n`),
    ...REFUSED,
  },
  {
    name: 'a body without its last chunk',
    sends: pieces(`${BODY.length.toString(16)}\r\n${BODY}\r\n`),
    finishes: true,
    ...REFUSED,
  },
  {
    name: 'trailers that were announced',
    sends: echo([CHUNKED, 'Trailer: X-Late'], `${chunked(BODY).slice(0, -2)}X-Late: 1\r\n\r\n`),
    ...REFUSED,
  },
  {
    name: 'trailers that name a length',
    sends: pieces(`${chunked(BODY).slice(0, -2)}Content-Length: 99\r\nHost: evil\r\n\r\n`),
    ...REFUSED,
  },
  {
    name: 'a second call behind the last chunk',
    sends: echo([CHUNKED], chunked(BODY) + good('b')),
    answered: [200, 200],
    meant: ['a', 'b'],
    leaves: 'open',
  },
  {
    name: 'a GET with a body',
    sends: head('GET /api/resources HTTP/1.1', HOST, `Content-Length: ${SMUGGLED.length}`) + SMUGGLED,
    ...REFUSED,
  },
  {
    name: 'a HEAD with a body',
    sends: head('HEAD /api/resources HTTP/1.1', HOST, `Content-Length: ${SMUGGLED.length}`) + SMUGGLED,
    bodiless: [0],
    ...REFUSED,
  },
  {
    name: 'a GET with a chunked body',
    sends: head('GET /api/resources HTTP/1.1', HOST, CHUNKED) + chunked(SMUGGLED),
    ...REFUSED,
  },
];
