import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { MAX_VERDICT_BYTES } from '../../../src/payments/x402/facilitator/facilitator.ts';
import type { ScriptedAnswer } from '../../support/hostile-facilitator.ts';

/** Short deadlines, so that a peer that hangs does not hold a test up. Milliseconds. */
export const DEADLINES = { verifyMs: 400, settleMs: 400, confirmMs: 100 };
/** A facilitator signs for itself: nothing is ever written ahead. */
export const noWriteAhead = async (): Promise<void> => assert.fail('a remote rail signs nothing');

export const json = (body: unknown, status = 200): ScriptedAnswer => ({ kind: 'json', status, body });
export const text = (
  body: string | Uint8Array,
  type = 'application/json',
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): ScriptedAnswer => ({ kind: 'text', type, body, status, headers });

const APPROVAL = '{"isValid":true,"success":true}';
const CHUNKED = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
const GZIP = { 'content-encoding': 'gzip' };
/** A compression bomb, decompressed, bytes; compressed it fits under the cap. */
const BOMB_BYTES = 40_000_000;

/** What no verdict can be read from, at either endpoint. */
export const NO_VERDICT: readonly (readonly [what: string, answer: ScriptedAnswer])[] = [
  ['500 with an error document', json({ error: 'internal' }, 500)],
  ['429', json({ message: 'slow down' }, 429)],
  ['401', json({ error: 'unauthorized' }, 401)],
  ['200 with an empty body', text('')],
  ['200 with bad JSON', text('{"isValid":true,"success":true')],
  ['200 with HTML', text('<html>{"success":true}</html>', 'text/html')],
  ['the verdict twice', text('{"isValid":false,"isValid":true,"success":false,"success":true}')],
  ['a verdict as prototype', text('{"__proto__":{"isValid":true,"success":true}}')],
  ['verdicts as text', json({ isValid: 'true', success: 'true' })],
  ['verdicts as numbers', json({ isValid: 1, success: 1 })],
  ['an array', json([{ isValid: true, success: true }])],
  ['null', json(null)],
  ['10 MB', text(JSON.stringify({ isValid: true, success: true, padding: 'x'.repeat(10_000_000) }))],
  [
    'just above the cap',
    text(JSON.stringify({ isValid: true, success: true, padding: 'x'.repeat(MAX_VERDICT_BYTES) })),
  ],
  ['403', json({ error: 'forbidden' }, 403)],
  ['404', json({ error: 'not found' }, 404)],
  ['402 with an offer of its own', json({ x402Version: 2, accepts: [] }, 402)],
  ['502 with HTML', text('<html>502 Bad Gateway</html>', 'text/html', 502)],
  ['204', text('', 'application/json', 204)],
  ['the verdict one level down', json({ result: { isValid: true, success: true } })],
  ['two verdicts in a row', text(`${APPROVAL}${APPROVAL}`)],
  ['bytes that are no UTF-8', text(Uint8Array.of(0x22, 0xff, 0xfe, 0x22))],
  ['brackets without end', text('['.repeat(60_000))],
  ['a gzip bomb', text(gzipSync(Buffer.alloc(BOMB_BYTES, ' ')), 'application/json', 200, GZIP)],
  ['an unrequested compressed verdict', text(gzipSync(APPROVAL), 'application/json', 200, GZIP)],
  ['a redirect', { kind: 'redirect', location: 'http://127.0.0.1:9/verify' }],
  ['a redirect to itself', { kind: 'redirect', status: 307, location: '/settle' }],
  ['a redirect for ever', { kind: 'redirect', status: 301, location: '' }],
  ['chunks that are none', { kind: 'raw', bytes: `${CHUNKED}zz\r\n${APPROVAL}\r\n0\r\n\r\n` }],
  ['half an answer', { kind: 'raw', bytes: `HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n${APPROVAL}` }],
  ['no HTTP at all', { kind: 'raw', bytes: 'SSH-2.0-OpenSSH_9.6\r\n' }],
  ['a drip', { kind: 'drip' }],
  ['silence', { kind: 'hang' }],
  ['a reset after the request', { kind: 'reset' }],
];
