/** Cases of request lines and field lines, for the framing spec. */

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
} from './conversation.ts';

const BODY = marked('a');
const LENGTH = `Content-Length: ${BODY.length}`;
const REFUSED = { answered: [400], leaves: 'closed' } as const;
const SERVED = { answered: [200], meant: ['a'], leaves: 'open' } as const;
const LISTING = 'GET /api/resources HTTP/1.1';

const line = (request: string): string => head(request, HOST, JSON_TYPE, LENGTH) + BODY;
const field = (...lines: readonly string[]): string => echo([LENGTH, ...lines], BODY);
/** The first bytes of a TLS 1.2 handshake. */
const TLS_HELLO = `\x16\x03\x01\x00\xc5\x01\x00\x00\xc1\x03\x03${'\x5a'.repeat(184)}`;

/**
 * Request lines, field lines and the bytes before and behind them: RFC 9112, sections 2, 3, 5 and
 * 9.
 */
export const HEAD_CASES: readonly FramingCase[] = [
  { name: 'a call as it should be', sends: good('a'), ...SERVED },
  { name: 'an empty line before the request', sends: `\r\n${good('a')}`, ...SERVED },
  { name: 'a folded field', sends: field('X-A: 1\r\n 2'), ...REFUSED },
  { name: 'a folded Transfer-Encoding', sends: echo(['Transfer-Encoding:\r\n chunked', LENGTH], BODY), ...REFUSED },
  { name: 'a space before the colon', sends: echo([LENGTH.replace(':', ' :')], BODY), ...REFUSED },
  { name: 'a space before the name', sends: head(ECHO, ` ${HOST}`, JSON_TYPE, LENGTH) + BODY, ...REFUSED },
  { name: 'lines that end with a line feed', sends: good('a').replaceAll('\r\n', '\n'), ...REFUSED },
  { name: 'one line that ends with a line feed', sends: good('a').replace(`${HOST}\r\n`, `${HOST}\n`), ...REFUSED },
  { name: 'a bare carriage return in a value', sends: field('X-A: 1\rContent-Length: 0'), ...REFUSED },
  { name: 'a NUL in a value', sends: field('X-A: 1\x002'), ...REFUSED },
  { name: 'a NUL in a name', sends: field('X\x00A: 1'), ...REFUSED },
  { name: 'a DEL in a value', sends: field('X-A: 1\x7f'), ...REFUSED },
  { name: 'Latin-1 in a value', sends: field('X-A: gr\xfc\xdfe'), ...SERVED },
  { name: 'a field without a colon', sends: field('X-A'), ...REFUSED },
  { name: 'a field without a name', sends: field(': 1'), ...REFUSED },
  { name: 'a name with a bracket', sends: field('X[a]: 1'), ...REFUSED },
  { name: 'a name with Latin-1', sends: field('X-\xfc: 1'), ...REFUSED },
  { name: 'a name of unusual characters that are allowed', sends: field("!#$%&'*+-.^_`|~: 1"), ...SERVED },
  { name: 'two Hosts, different', sends: field('Host: evil'), ...REFUSED },
  { name: 'two Hosts, the same', sends: field(HOST), ...REFUSED },
  { name: 'no Host', sends: head(ECHO, JSON_TYPE, LENGTH) + BODY, ...REFUSED },
  {
    name: 'no Host in HTTP/1.0',
    sends: head(ECHO.replace('1.1', '1.0'), JSON_TYPE, LENGTH) + BODY,
    ...SERVED,
    leaves: 'closed',
  },
  {
    name: 'absolute form',
    sends: line('POST http://evil.test/api/resources/free_echo/invoke HTTP/1.1'),
    answered: [200],
    meant: ['a'],
    leaves: 'open',
  },
  {
    name: 'absolute form of another scheme',
    sends: line('POST gopher://evil.test/1 HTTP/1.1'),
    answered: [404],
    leaves: 'closed',
  },
  { name: 'authority form without CONNECT', sends: line('POST evil.test:80 HTTP/1.1'), ...REFUSED },
  {
    name: 'CONNECT',
    sends: head('CONNECT evil.test:443 HTTP/1.1', 'Host: evil.test:443') + good('smuggled'),
    ...REFUSED,
  },
  { name: 'asterisk form', sends: head('OPTIONS * HTTP/1.1', HOST), answered: [404], leaves: 'open' },
  { name: 'asterisk form of a POST', sends: line('POST * HTTP/1.1'), answered: [404], leaves: 'closed' },
  { name: 'a target with a space', sends: line(`${ECHO.replace('free_echo', 'free echo')}`), ...REFUSED },
  { name: 'a target with a NUL', sends: line(ECHO.replace('free_echo', 'free\x00echo')), ...REFUSED },
  { name: 'a target with a fragment', sends: line(ECHO.replace('invoke', 'invoke#x')), ...SERVED },
  {
    name: 'a target that begins with two slashes',
    sends: line(ECHO.replace('/api', '//api')),
    answered: [404],
    leaves: 'closed',
  },
  { name: 'a target that climbs', sends: line(ECHO.replace('/api', '/x/../api')), answered: [404], leaves: 'closed' },
  { name: 'a method of lower case', sends: line(ECHO.replace('POST', 'post')), ...REFUSED },
  { name: 'an unknown method', sends: line(ECHO.replace('POST', 'BREW')), ...REFUSED },
  {
    name: 'TRACE',
    sends: head('TRACE /api/resources HTTP/1.1', HOST, 'X-Secret: 1'),
    answered: [405],
    leaves: 'open',
  },
  { name: 'HTTP/0.9', sends: 'GET /api/resources\r\n\r\n', ...REFUSED },
  { name: 'HTTP/1.2', sends: line(ECHO.replace('1.1', '1.2')), ...REFUSED },
  { name: 'HTTP/2.0', sends: line(ECHO.replace('1.1', '2.0')), ...REFUSED },
  { name: 'HTTP/11', sends: line(ECHO.replace('1.1', '11')), ...REFUSED },
  { name: 'a version of lower case', sends: line(ECHO.replace('HTTP', 'http')), ...REFUSED },
  { name: 'ICE instead of HTTP', sends: line(ECHO.replace('HTTP', 'ICE')), ...REFUSED },
  { name: 'two spaces before the version', sends: line(ECHO.replace(' HTTP', '  HTTP')), ...SERVED },
  {
    name: 'the preface of HTTP/2',
    sends: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00',
    ...REFUSED,
  },
  { name: 'a TLS hello', sends: TLS_HELLO, ...REFUSED },
  {
    name: 'Upgrade: h2c',
    sends: field('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
    ...SERVED,
  },
  {
    name: 'Upgrade: websocket',
    sends: head(
      LISTING,
      HOST,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
    ),
    answered: [200],
    leaves: 'open',
  },
  { name: 'Expect: 100-continue', sends: field('Expect: 100-continue'), ...SERVED },
  { name: 'Expect: 100-Continue, twice', sends: field('Expect: 100-Continue', 'Expect: 100-continue'), ...SERVED },
  { name: 'an unknown expectation', sends: field('Expect: 200-maybe'), ...SERVED },
  {
    name: 'Expect without a body',
    sends: head(LISTING, HOST, 'Expect: 100-continue'),
    answered: [200],
    leaves: 'closed',
  },
  { name: '100 fields', sends: field(...Array.from({ length: 96 }, (_, at) => `X-${at}: 1`)), ...SERVED },
  {
    name: '101 fields, the length behind them',
    sends: head(ECHO, HOST, JSON_TYPE, ...Array.from({ length: 98 }, (_, at) => `X-${at}: 1`), LENGTH) + BODY,
    ...REFUSED,
  },
  { name: 'a head of 31 KiB', sends: field(`X-A: ${'a'.repeat(31 * 1_024)}`), ...SERVED },
  { name: 'a head of 33 KiB', sends: field(`X-A: ${'a'.repeat(33 * 1_024)}`), ...REFUSED },
  { name: 'a head without an end', sends: `${ECHO}\r\n${HOST}\r\n`, finishes: true, ...REFUSED },
  { name: 'nothing at all', sends: '', finishes: true, answered: [], leaves: 'closed' },
  { name: 'a call that is sent byte by byte', sends: good('a'), byByte: true, ...SERVED },
  {
    name: 'two calls in one packet',
    sends: good('a') + good('b'),
    answered: [200, 200],
    meant: ['a', 'b'],
    leaves: 'open',
  },
  {
    name: 'a call behind a refused one',
    sends: head('POST /nowhere HTTP/1.1', HOST, JSON_TYPE, LENGTH) + BODY + good('smuggled'),
    answered: [404],
    leaves: 'closed',
  },
  {
    name: 'a call behind one that is too large',
    sends: echo(['Content-Length: 262145'], 'x'.repeat(262_145)) + good('smuggled'),
    answered: [413],
    leaves: 'closed',
  },
  {
    name: 'a call behind a HEAD',
    sends: head('HEAD /api/resources HTTP/1.1', HOST) + good('b'),
    answered: [200, 200],
    bodiless: [0],
    meant: ['b'],
    leaves: 'open',
  },
  {
    name: 'a call behind one that closes',
    sends: echo([LENGTH, 'Connection: close'], BODY) + good('smuggled'),
    answered: [200],
    meant: ['a'],
    leaves: 'closed',
  },
  {
    name: 'garbage behind a call',
    sends: `${good('a')}GARBAGE\r\n\r\n`,
    answered: [200, 400],
    meant: ['a'],
    leaves: 'closed',
  },
];

const CHUNKED = 'Transfer-Encoding: chunked';

/** A call whose length `lines` declare, with another call behind its body. */
const declared = (...lines: readonly string[]): string => echo(lines, BODY + SMUGGLED);
const coded = (...lines: readonly string[]): string => echo(lines, chunked(BODY));
const pieces = (text: string): string => echo([CHUNKED], text);

/** Declarations of the length of a body: RFC 9112, sections 6 and 7. */
export const LENGTH_CASES: readonly FramingCase[] = [
  {
    name: 'Content-Length before Transfer-Encoding',
    sends: echo([LENGTH, CHUNKED], chunked(BODY)),
    ...REFUSED,
  },
  {
    name: 'Transfer-Encoding before Content-Length',
    sends: echo([CHUNKED, LENGTH], chunked(BODY)),
    ...REFUSED,
  },
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
  {
    name: 'Content-Length twice, the same',
    sends: declared(LENGTH, LENGTH),
    ...REFUSED,
  },
  { name: 'Content-Length twice, different', sends: declared(LENGTH, 'Content-Length: 3'), ...REFUSED },
  {
    name: 'Content-Length as a list',
    sends: declared(`${LENGTH}, ${BODY.length}`),
    ...REFUSED,
  },
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
  {
    name: 'Content-Length with zeros before it',
    sends: echo([`Content-Length: 000${BODY.length}`], BODY),
    ...SERVED,
  },
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
  {
    name: 'no length, with a body',
    sends: echo([], BODY),
    answered: [200],
    meant: [EMPTY],
    leaves: 'closed',
  },
  { name: 'Transfer-Encoding: chunked', sends: coded(CHUNKED), ...SERVED },
  { name: 'Transfer-Encoding: Chunked', sends: coded('Transfer-Encoding: Chunked'), ...SERVED },
  { name: 'Transfer-Encoding: xchunked', sends: coded('Transfer-Encoding: xchunked'), ...REFUSED },
  { name: 'Transfer-Encoding: chunkedx', sends: coded('Transfer-Encoding: chunkedx'), ...REFUSED },
  { name: 'Transfer-Encoding: gzip, chunked', sends: coded('Transfer-Encoding: gzip, chunked'), ...REFUSED },
  { name: 'Transfer-Encoding: chunked, gzip', sends: coded('Transfer-Encoding: chunked, gzip'), ...REFUSED },
  { name: 'Transfer-Encoding: chunked, chunked', sends: coded('Transfer-Encoding: chunked, chunked'), ...REFUSED },
  {
    name: 'Transfer-Encoding: identity',
    sends: declared('Transfer-Encoding: identity', LENGTH),
    ...REFUSED,
  },
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
  {
    name: 'Transfer-Encoding empty beside a length',
    sends: declared('Transfer-Encoding:', LENGTH),
    ...REFUSED,
  },
  {
    name: 'Transfer_Encoding is another name',
    sends: echo([LENGTH, 'Transfer_Encoding: chunked'], BODY),
    ...SERVED,
  },
  {
    name: 'Transfer-Encoding in HTTP/1.0',
    sends: head(ECHO.replace('1.1', '1.0'), HOST, JSON_TYPE, CHUNKED) + chunked(BODY),
    ...REFUSED,
  },
  {
    name: 'a chunk extension',
    sends: pieces(`${BODY.length.toString(16)};a=b\r\n${BODY}\r\n0\r\n\r\n`),
    ...SERVED,
  },
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
  {
    name: 'a chunk size beyond 64 bits',
    sends: pieces(`1${'0'.repeat(15)}c\r\n${BODY}\r\n0\r\n\r\n`),
    ...REFUSED,
  },
  {
    name: 'a chunk size of 2^60',
    sends: pieces(`1000000000000000\r\n${BODY}`),
    finishes: true,
    ...REFUSED,
  },
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
