import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { gzipSync } from 'node:zlib';
import { attack, measured } from '../catalogue.ts';
import { MESSAGE_CHANNELS, type Seen } from '../payments/channels.ts';
import {
  answer,
  broken,
  CANARY,
  CAP_BYTES,
  CHUNKED,
  chunk,
  cut,
  ends,
  flood,
  GOOD,
  HELLO,
  type HostileAnswer,
  type HostileStage,
  hello,
  late,
  OK,
  type Outcome,
  openHostileStage,
  PRICE_UNITS,
  refusedStatus,
  trickle,
  wellFormed,
} from './stage.ts';

/** All headers that an answer to an agent can have. */
const NAMES: ReadonlySet<string> = new Set([
  'cache-control',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'idempotent-replayed',
  'keep-alive',
  'payment-response',
  'transfer-encoding',
  'vary',
  'x-content-type-options',
  'x-request-id',
]);

/** Heads that no client may accept. */
const HEADS: readonly HostileAnswer[] = [
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
const BODIES: readonly HostileAnswer[] = [
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
const BOMB = gzipSync(Buffer.alloc(2_000_000));

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

describe('a backend that sends hostile answers', () => {
  let stage: HostileStage;
  before(async () => {
    stage = await openHostileStage();
  });
  after(() => stage.close());

  attack(['H6', 'P6'], 'at least forty hostile answers are tried', (context) => {
    assert.equal(new Set(HOSTILE_ANSWERS.map(({ name }) => name)).size, HOSTILE_ANSWERS.length);
    measured(context, 'hostile backend answers', HOSTILE_ANSWERS.length);
  });

  for (const { name, action, outcome } of HOSTILE_ANSWERS)
    attack(['H6', 'P2', 'P6'], `${name}: ${outcome.kind}, over every channel, free and paid`, async (context) => {
      const proofs = await Promise.all(MESSAGE_CHANNELS.map(() => stage.proof('goods')));
      const before = await stage.income();
      stage.behave(action);
      const [free, paid] = await Promise.all([
        Promise.all(MESSAGE_CHANNELS.map((channel) => stage.call(channel, 'gift'))),
        Promise.all(MESSAGE_CHANNELS.map((channel, at) => stage.call(channel, 'goods', proofs[at]))),
      ]);
      for (const [at, channel] of MESSAGE_CHANNELS.entries())
        for (const seen of [free[at], paid[at]]) {
          assert.ok(seen !== undefined);
          expected(seen, outcome, channel === 'http', `${channel} ${seen.everything}`);
          closed(seen);
        }

      stage.behave(wellFormed(GOOD));
      const next = await Promise.all(
        [...MESSAGE_CHANNELS, ...MESSAGE_CHANNELS].map((channel) => stage.call(channel, 'gift')),
      );
      for (const seen of next) assert.deepEqual([seen.outcome, seen.bytes.toString()], ['delivered', GOOD]);

      const collected = await Promise.all(
        MESSAGE_CHANNELS.map((channel, at) => stage.call(channel, 'goods', proofs[at])),
      );
      for (const seen of collected) {
        closed(seen);
        // A delivered answer is kept for the buyer's token; an undelivered one is delivered now.
        if (outcome.kind === 'delivered')
          assert.deepEqual([seen.outcome, seen.bytes.toString('latin1')], ['delivered', outcome.body]);
        else assert.deepEqual([seen.outcome, seen.bytes.toString()], ['delivered', GOOD], seen.everything);
      }
      const settled = ((await stage.income()) - before) / PRICE_UNITS;
      assert.equal(settled, BigInt(MESSAGE_CHANNELS.length), 'each proof is settled once');
      measured(context, 'double settlements', Number(settled) - MESSAGE_CHANNELS.length);
    });

  attack('O7', 'no canary is in the log', () => {
    for (const line of stage.gateway.logLines) assert.ok(!line.includes(CANARY), line);
  });
});

/** Fails when a header is not on the list or any part holds the canary. */
function closed({ names, everything }: Seen): void {
  assert.ok(!everything.includes(CANARY), everything);
  assert.deepEqual(
    names.filter((name) => !NAMES.has(name)),
    [],
  );
  assert.equal(new Set(names).size, names.length, 'no header comes twice');
}

function expected(seen: Seen, outcome: Outcome, streamed: boolean, what: string): void {
  if (outcome.kind === 'delivered') {
    assert.equal(seen.outcome, 'delivered', what);
    assert.equal(seen.bytes.toString('latin1'), outcome.body, what);
    return;
  }
  if (outcome.kind === 'cut' && streamed) {
    assert.equal(seen.outcome, 'cut', what);
    return;
  }
  assert.equal(seen.outcome, 'failed', what);
  assert.ok(seen.code === 'BACKEND_ERROR' || (seen.code === 'BACKEND_TIMEOUT' && outcome.reason === 'timeout'), what);
  // After three broken connections the next call sends no request, and waits until its deadline.
  const reasons: readonly unknown[] = outcome.reason === 'transport' ? ['transport', 'timeout'] : [outcome.reason];
  if (outcome.reason !== undefined) assert.ok(reasons.includes(seen.reason), what);
  if (outcome.kind === 'failed') assert.equal(seen.details['status'], outcome.status, what);
}
