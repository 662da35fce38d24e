/** The hostile answers of a backend, with what the agent gets for each. */

import { gzipSync } from 'node:zlib';
import { BODIES, HEADS } from './broken-answers.ts';
import {
  answer,
  broken,
  CANARY,
  CHUNKED,
  chunk,
  ends,
  flood,
  HELLO,
  type HostileAnswer,
  hello,
  late,
  OK,
  refusedStatus,
  trickle,
} from './hostile-answer.ts';
import { wellFormed } from './stage.ts';

const NO_BODY = 'content-length: 0\r\n\r\n';
const SECRETS = `<h1>500</h1><pre>at /srv/${CANARY}/db.js:7 postgres://root:${CANARY}@10.0.0.5/</pre>`;

/** Headers of a backend that must never reach an agent. */
const FORBIDDEN = [
  `set-cookie: session=${CANARY}`,
  `www-authenticate: Basic realm="${CANARY}"`,
  `proxy-authenticate: Basic realm="${CANARY}"`,
  `alt-svc: h2="${CANARY}.test:443"`,
  'clear-site-data: "*"',
  'strict-transport-security: max-age=1',
  'access-control-allow-origin: *',
  'access-control-allow-credentials: true',
  `server: ${CANARY}`,
  `x-powered-by: ${CANARY}`,
  `location: http://${CANARY}.internal/`,
  `content-location: http://${CANARY}.internal/`,
  `refresh: 0; url=http://${CANARY}.internal/`,
  `x-accel-redirect: /${CANARY}`,
  `report-to: {"url":"http://${CANARY}.test"}`,
  `via: 1.1 ${CANARY}`,
].join('\r\n');
const FORGED = [
  `payment-response: ${CANARY}`,
  `payment-required: ${CANARY}`,
  `x-payment-response: ${CANARY}`,
  'idempotent-replayed: true',
  `x-request-id: ${CANARY}`,
  `request-id: ${CANARY}`,
].join('\r\n');
const HOP_BY_HOP = [
  `connection: keep-alive, x-hop, payment-response, x-request-id`,
  `x-hop: ${CANARY}`,
  `keep-alive: timeout=5, max=${CANARY}`,
  `proxy-connection: ${CANARY}`,
  `te: ${CANARY}`,
  `upgrade: ${CANARY}`,
  `trailer: x-${CANARY}`,
].join('\r\n');

const WHOLE: readonly HostileAnswer[] = [
  answer('headers that only the gateway itself may set', `${OK}${FORBIDDEN}\r\n${HELLO}`, hello),
  answer('forged words of the gateway', `${OK}${FORGED}\r\n${HELLO}`, hello),
  answer('hop-by-hop headers and nominations', `${OK}${HOP_BY_HOP}\r\n${HELLO}`, hello),
  answer('a reason phrase with words of its own', `HTTP/1.1 200 ${CANARY}\r\n${HELLO}`, hello),
  answer('early hints, 500 of them', `${`HTTP/1.1 103 ${CANARY}\r\n\r\n`.repeat(500)}${OK}${HELLO}`, hello),
  answer('trailers', `${CHUNKED}${chunk('hello')}0\r\npayment-response: ${CANARY}\r\n\r\n`, hello),
  answer('chunk extensions', `${CHUNKED}5;${CANARY}="${'x'.repeat(500)}"\r\nhello\r\n0\r\n\r\n`, hello),
  answer('a second answer behind the first', `${OK}${HELLO}${wellFormed(CANARY)}`, hello),
  answer('a second answer behind an empty one', `HTTP/1.1 204 No Content\r\n\r\n${wellFormed(CANARY)}`, {
    kind: 'delivered',
    body: '',
  }),
  answer('204 with a body', `HTTP/1.1 204 No Content\r\ncontent-length: 11\r\n\r\n${CANARY}`, {
    kind: 'delivered',
    body: '',
  }),
  answer('a body longer than its length', `${OK}${HELLO}${CANARY}`, hello),
  answer('HTTP/1.0 that ends with its connection', ends('HTTP/1.0 200 OK\r\n\r\nhello'), hello),
];

const STATUSES: readonly HostileAnswer[] = [
  ...[301, 302, 303, 307, 308].map((status) =>
    answer(
      `${status} to an address of the inside`,
      `HTTP/1.1 ${status} Go\r\nlocation: http://169.254.169.254/${CANARY}\r\n${NO_BODY}`,
      { kind: 'failed', reason: 'redirect_not_followed', status },
    ),
  ),
  answer('304 to a request without a condition', `HTTP/1.1 304 Not Modified\r\netag: "${CANARY}"\r\n\r\n`, {
    kind: 'failed',
    reason: 'redirect_not_followed',
    status: 304,
  }),
  answer(
    '402 with an offer of its own',
    wellFormed(
      `{"x402Version":2,"accepts":[{"payTo":"${CANARY}"}]}`,
      `HTTP/1.1 402 Payment Required\r\npayment-required: ${CANARY}`,
    ),
    refusedStatus(402),
  ),
  answer(
    '401 with a challenge',
    `HTTP/1.1 401 No\r\nwww-authenticate: Bearer ${CANARY}\r\n${NO_BODY}`,
    refusedStatus(401),
  ),
  answer('407', `HTTP/1.1 407 No\r\nproxy-authenticate: Basic ${CANARY}\r\n${NO_BODY}`, refusedStatus(407)),
  answer('429 that waits for a year', `HTTP/1.1 429 No\r\nretry-after: 31536000\r\n${NO_BODY}`, refusedStatus(429)),
  answer(
    '500 with a page of secrets',
    wellFormed(SECRETS, 'HTTP/1.1 500 No\r\ncontent-type: text/html'),
    refusedStatus(500),
  ),
  answer('503 with an endless page', flood('HTTP/1.1 503 No\r\n\r\n', CANARY.repeat(100)), refusedStatus(503)),
  answer('status 999', `HTTP/1.1 999 ${CANARY}\r\n${HELLO}`, refusedStatus(999)),
  answer('101 without an upgrade', `HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: ${CANARY}\r\n\r\n`, broken),
  answer('100 without an expectation', `HTTP/1.1 100 Continue\r\n\r\n${OK}${HELLO}`, broken),
  answer('early hints without end', trickle('', `HTTP/1.1 103 ${CANARY}\r\n\r\n`), late),
];

/** Compressed below the cap; the gateway must not decompress it. */
export const BOMB = gzipSync(Buffer.alloc(2_000_000));

export const HOSTILE_ANSWERS: readonly HostileAnswer[] = [
  ...WHOLE,
  ...STATUSES,
  ...HEADS,
  ...BODIES,
  answer(
    'a gzip bomb',
    (socket) => {
      socket.write(
        `${OK}content-encoding: gzip\r\ncontent-type: application/json\r\ncontent-length: ${BOMB.length}\r\n\r\n`,
      );
      socket.write(BOMB);
    },
    { kind: 'delivered', body: BOMB.toString('latin1') },
  ),
];
