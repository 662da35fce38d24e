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

type More = Partial<Omit<FramingCase, 'name' | 'sends'>>;
const refused = (name: string, sends: string, more?: More): FramingCase => {
  return { name, sends, answered: [400], leaves: 'closed', ...more };
};
const served = (name: string, sends: string, more?: More): FramingCase => {
  return { name, sends, answered: [200], meant: ['a'], leaves: 'open', ...more };
};
const answered = (
  name: string,
  sends: string,
  statuses: readonly number[],
  leaves: FramingCase['leaves'],
  more?: More,
): FramingCase => ({ name, sends, answered: statuses, leaves, ...more });

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
  served('a call as it should be', good('a')),
  served('an empty line before the request', `\r\n${good('a')}`),
  refused('a folded field', field('X-A: 1\r\n 2')),
  refused('a folded Transfer-Encoding', echo(['Transfer-Encoding:\r\n chunked', LENGTH], BODY)),
  refused('a space before the colon', echo([LENGTH.replace(':', ' :')], BODY)),
  refused('a space before the name', head(ECHO, ` ${HOST}`, JSON_TYPE, LENGTH) + BODY),
  refused('lines that end with a line feed', good('a').replaceAll('\r\n', '\n')),
  refused('one line that ends with a line feed', good('a').replace(`${HOST}\r\n`, `${HOST}\n`)),
  refused('a bare carriage return in a value', field('X-A: 1\rContent-Length: 0')),
  refused('a NUL in a value', field('X-A: 1\x002')),
  refused('a NUL in a name', field('X\x00A: 1')),
  refused('a DEL in a value', field('X-A: 1\x7f')),
  served('Latin-1 in a value', field('X-A: gr\xfc\xdfe')),
  refused('a field without a colon', field('X-A')),
  refused('a field without a name', field(': 1')),
  refused('a name with a bracket', field('X[a]: 1')),
  refused('a name with Latin-1', field('X-\xfc: 1')),
  served('a name of unusual characters that are allowed', field("!#$%&'*+-.^_`|~: 1")),
  refused('two Hosts, different', field('Host: evil')),
  refused('two Hosts, the same', field(HOST)),
  refused('no Host', head(ECHO, JSON_TYPE, LENGTH) + BODY),
  served('no Host in HTTP/1.0', head(ECHO.replace('1.1', '1.0'), JSON_TYPE, LENGTH) + BODY, { leaves: 'closed' }),
  served('absolute form', line('POST http://evil.test/api/resources/free_echo/invoke HTTP/1.1')),
  answered('absolute form of another scheme', line('POST gopher://evil.test/1 HTTP/1.1'), [404], 'closed'),
  refused('authority form without CONNECT', line('POST evil.test:80 HTTP/1.1')),
  refused('CONNECT', head('CONNECT evil.test:443 HTTP/1.1', 'Host: evil.test:443') + good('smuggled')),
  answered('asterisk form', head('OPTIONS * HTTP/1.1', HOST), [404], 'open'),
  answered('asterisk form of a POST', line('POST * HTTP/1.1'), [404], 'closed'),
  refused('a target with a space', line(`${ECHO.replace('free_echo', 'free echo')}`)),
  refused('a target with a NUL', line(ECHO.replace('free_echo', 'free\x00echo'))),
  served('a target with a fragment', line(ECHO.replace('invoke', 'invoke#x'))),
  answered('a target that begins with two slashes', line(ECHO.replace('/api', '//api')), [404], 'closed'),
  answered('a target that climbs', line(ECHO.replace('/api', '/x/../api')), [404], 'closed'),
  refused('a method of lower case', line(ECHO.replace('POST', 'post'))),
  refused('an unknown method', line(ECHO.replace('POST', 'BREW'))),
  answered('TRACE', head('TRACE /api/resources HTTP/1.1', HOST, 'X-Secret: 1'), [405], 'open'),
  refused('HTTP/0.9', 'GET /api/resources\r\n\r\n'),
  refused('HTTP/1.2', line(ECHO.replace('1.1', '1.2'))),
  refused('HTTP/2.0', line(ECHO.replace('1.1', '2.0'))),
  refused('HTTP/11', line(ECHO.replace('1.1', '11'))),
  refused('a version of lower case', line(ECHO.replace('HTTP', 'http'))),
  refused('ICE instead of HTTP', line(ECHO.replace('HTTP', 'ICE'))),
  served('two spaces before the version', line(ECHO.replace(' HTTP', '  HTTP'))),
  refused('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00'),
  refused('a TLS hello', TLS_HELLO),
  served(
    'Upgrade: h2c',
    field('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
  ),
  answered(
    'Upgrade: websocket',
    head(
      LISTING,
      HOST,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
    ),
    [200],
    'open',
  ),
  served('Expect: 100-continue', field('Expect: 100-continue')),
  served('Expect: 100-Continue, twice', field('Expect: 100-Continue', 'Expect: 100-continue')),
  served('an unknown expectation', field('Expect: 200-maybe')),
  answered('Expect without a body', head(LISTING, HOST, 'Expect: 100-continue'), [200], 'closed'),
  served('100 fields', field(...Array.from({ length: 96 }, (_, at) => `X-${at}: 1`))),
  refused(
    '101 fields, the length behind them',
    head(ECHO, HOST, JSON_TYPE, ...Array.from({ length: 98 }, (_, at) => `X-${at}: 1`), LENGTH) + BODY,
  ),
  served('a head of 31 KiB', field(`X-A: ${'a'.repeat(31 * 1_024)}`)),
  refused('a head of 33 KiB', field(`X-A: ${'a'.repeat(33 * 1_024)}`)),
  refused('a head without an end', `${ECHO}\r\n${HOST}\r\n`, { finishes: true }),
  answered('nothing at all', '', [], 'closed', { finishes: true }),
  served('a call that is sent byte by byte', good('a'), { byByte: true }),
  answered('two calls in one packet', good('a') + good('b'), [200, 200], 'open', { meant: ['a', 'b'] }),
  answered(
    'a call behind a refused one',
    head('POST /nowhere HTTP/1.1', HOST, JSON_TYPE, LENGTH) + BODY + good('smuggled'),
    [404],
    'closed',
  ),
  answered(
    'a call behind one that is too large',
    echo(['Content-Length: 262145'], 'x'.repeat(262_145)) + good('smuggled'),
    [413],
    'closed',
  ),
  answered('a call behind a HEAD', head('HEAD /api/resources HTTP/1.1', HOST) + good('b'), [200, 200], 'open', {
    bodiless: [0],
    meant: ['b'],
  }),
  answered(
    'a call behind one that closes',
    echo([LENGTH, 'Connection: close'], BODY) + good('smuggled'),
    [200],
    'closed',
    { meant: ['a'] },
  ),
  answered('garbage behind a call', `${good('a')}GARBAGE\r\n\r\n`, [200, 400], 'closed', { meant: ['a'] }),
];

const CHUNKED = 'Transfer-Encoding: chunked';

/** A call whose length `lines` declare, with another call behind its body. */
const declared = (...lines: readonly string[]): string => echo(lines, BODY + SMUGGLED);
const coded = (...lines: readonly string[]): string => echo(lines, chunked(BODY));
const pieces = (text: string): string => echo([CHUNKED], text);
const SIZE = BODY.length.toString(16);

/** Declarations of the length of a body: RFC 9112, sections 6 and 7. */
export const LENGTH_CASES: readonly FramingCase[] = [
  refused('Content-Length before Transfer-Encoding', echo([LENGTH, CHUNKED], chunked(BODY))),
  refused('Transfer-Encoding before Content-Length', echo([CHUNKED, LENGTH], chunked(BODY))),
  refused(
    'CL.TE with a call behind the last chunk',
    echo([`Content-Length: ${SMUGGLED.length + 5}`, CHUNKED], `0\r\n\r\n${SMUGGLED}`),
  ),
  refused('TE.CL with a call inside the chunk', echo([CHUNKED, 'Content-Length: 4'], chunked(SMUGGLED))),
  refused('Content-Length twice, the same', declared(LENGTH, LENGTH)),
  refused('Content-Length twice, different', declared(LENGTH, 'Content-Length: 3')),
  refused('Content-Length as a list', declared(`${LENGTH}, ${BODY.length}`)),
  refused('Content-Length +', declared(`Content-Length: +${BODY.length}`)),
  refused('Content-Length negative', declared('Content-Length: -1')),
  refused('Content-Length hexadecimal', declared('Content-Length: 0xc')),
  refused('Content-Length with a space inside', declared('Content-Length: 1 2')),
  refused('Content-Length with a fraction', declared('Content-Length: 12.0')),
  refused('Content-Length beyond 64 bits', declared('Content-Length: 18446744073709551628')),
  answered('Content-Length of 2^53', echo(['Content-Length: 9007199254740992'], BODY), [413], 'closed'),
  served('Content-Length with zeros before it', echo([`Content-Length: 000${BODY.length}`], BODY)),
  served('Content-Length with spaces around it', echo([`Content-Length:  \t${BODY.length} \t`], BODY)),
  refused('Content-Length empty', declared('Content-Length:')),
  refused('Content-Length larger than the body, which then ends', echo(['Content-Length: 99'], BODY), {
    finishes: true,
  }),
  answered(
    'Content-Length smaller than the body',
    echo([`Content-Length: ${BODY.length}`], `${BODY}{}`),
    [200],
    'closed',
    { meant: ['a'] },
  ),
  answered('no length, with a body', echo([], BODY), [200], 'closed', { meant: [EMPTY] }),
  served('Transfer-Encoding: chunked', coded(CHUNKED)),
  served('Transfer-Encoding: Chunked', coded('Transfer-Encoding: Chunked')),
  refused('Transfer-Encoding: xchunked', coded('Transfer-Encoding: xchunked')),
  refused('Transfer-Encoding: chunkedx', coded('Transfer-Encoding: chunkedx')),
  refused('Transfer-Encoding: gzip, chunked', coded('Transfer-Encoding: gzip, chunked')),
  refused('Transfer-Encoding: chunked, gzip', coded('Transfer-Encoding: chunked, gzip')),
  refused('Transfer-Encoding: chunked, chunked', coded('Transfer-Encoding: chunked, chunked')),
  refused('Transfer-Encoding: identity', declared('Transfer-Encoding: identity', LENGTH)),
  refused('Transfer-Encoding: chunked, identity', coded('Transfer-Encoding: chunked, identity')),
  refused('Transfer-Encoding twice', coded(CHUNKED, CHUNKED)),
  refused('Transfer-Encoding: chunked beside one that is unknown', coded(CHUNKED, 'Transfer-Encoding: cow')),
  refused('Transfer-Encoding with a parameter', coded('Transfer-Encoding: chunked;q=1')),
  refused('Transfer-Encoding in quotes', coded('Transfer-Encoding: "chunked"')),
  served('Transfer-Encoding with a tab', coded('Transfer-Encoding:\tchunked')),
  refused('Transfer-Encoding with a vertical tab', coded('Transfer-Encoding: \x0bchunked')),
  refused('Transfer-Encoding empty beside a length', declared('Transfer-Encoding:', LENGTH)),
  served('Transfer_Encoding is another name', echo([LENGTH, 'Transfer_Encoding: chunked'], BODY)),
  refused('Transfer-Encoding in HTTP/1.0', head(ECHO.replace('1.1', '1.0'), HOST, JSON_TYPE, CHUNKED) + chunked(BODY)),
  served('a chunk extension', pieces(`${SIZE};a=b\r\n${BODY}\r\n0\r\n\r\n`)),
  refused('a chunk extension of 20 KB', pieces(`${SIZE};a=${'b'.repeat(20_000)}\r\n${BODY}\r\n0\r\n\r\n`)),
  refused('a chunk extension with a bare line feed', pieces(`${SIZE};\n${BODY}\r\n0\r\n\r\n`)),
  refused('chunk lines that end with a line feed', pieces(`${SIZE}\n${BODY}\n0\n\n`)),
  refused('a chunk whose line ends with a carriage return', pieces(`${SIZE}\r${BODY}\r0\r\r`)),
  refused('a chunk size that is negative', pieces(`-1\r\n${BODY}\r\n0\r\n\r\n`)),
  refused('a chunk size with 0x', pieces(`0xc\r\n${BODY}\r\n0\r\n\r\n`)),
  refused('a chunk size with a space before it', pieces(` ${SIZE}\r\n${BODY}\r\n0\r\n\r\n`)),
  refused('a chunk size beyond 64 bits', pieces(`1${'0'.repeat(15)}c\r\n${BODY}\r\n0\r\n\r\n`)),
  refused('a chunk size of 2^60', pieces(`1000000000000000\r\n${BODY}`), { finishes: true }),
  refused('a chunk longer than its size', pieces(`2\r\n${BODY}\r\n0\r\n\r\n`)),
  refused('a chunk without line end behind it', pieces(`${SIZE}\r\n${BODY}0\r\n\r\n`)),
  refused('a body without its last chunk', pieces(`${SIZE}\r\n${BODY}\r\n`), { finishes: true }),
  refused(
    'trailers that were announced',
    echo([CHUNKED, 'Trailer: X-Late'], `${chunked(BODY).slice(0, -2)}X-Late: 1\r\n\r\n`),
  ),
  refused(
    'trailers that name a length',
    pieces(`${chunked(BODY).slice(0, -2)}Content-Length: 99\r\nHost: evil\r\n\r\n`),
  ),
  answered('a second call behind the last chunk', echo([CHUNKED], chunked(BODY) + good('b')), [200, 200], 'open', {
    meant: ['a', 'b'],
  }),
  refused(
    'a GET with a body',
    head('GET /api/resources HTTP/1.1', HOST, `Content-Length: ${SMUGGLED.length}`) + SMUGGLED,
  ),
  refused(
    'a HEAD with a body',
    head('HEAD /api/resources HTTP/1.1', HOST, `Content-Length: ${SMUGGLED.length}`) + SMUGGLED,
    { bodiless: [0] },
  ),
  refused('a GET with a chunked body', head('GET /api/resources HTTP/1.1', HOST, CHUNKED) + chunked(SMUGGLED)),
];
