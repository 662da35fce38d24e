import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { MAX_VERDICT_BYTES } from '../../../src/payments/x402/facilitator/facilitator.ts';
import { createRemoteRail, type RemoteRailDeps } from '../../../src/payments/x402/facilitator/remote-rail.ts';
import type { FacilitatorEndpoint } from '../../../src/payments/x402/wire/settings.ts';
import { INVENTED_TRANSACTION, type ScriptedAnswer } from '../../support/hostile-facilitator.ts';
import { freshAddress } from './signing.ts';

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

/** What a hostile facilitator knows when it answers `/settle`. */
interface Situation {
  readonly network: string;
  readonly payer: string;
  /** The transaction that paid, when there is one; else an invented one. */
  readonly transaction: string;
  /** Another payment of the same payer and sum. */
  readonly foreign: string;
}

export type Lie = (situation: Situation) => ScriptedAnswer;

const success = (at: Situation, changes: object = {}): object => ({
  success: true,
  transaction: at.transaction,
  network: at.network,
  payer: at.payer,
  ...changes,
});
const denial = (at: Situation, errorReason: unknown, changes: object = {}): object => ({
  success: false,
  errorReason,
  transaction: '',
  network: at.network,
  payer: at.payer,
  ...changes,
});
const claims = (changes: (at: Situation) => object, status = 200): Lie => {
  return (at) => json(success(at, changes(at)), status);
};
const denies = (reason: unknown, changes: (at: Situation) => object = () => ({}), status = 200): Lie => {
  return (at) => json(denial(at, reason, changes(at)), status);
};

const SPENT = 'invalid_exact_evm_nonce_already_used';
const PENDING = 'settlement_pending';
const invented = (): object => ({ transaction: INVENTED_TRANSACTION });
const foreign = ({ foreign: transaction }: Situation): object => ({ transaction });
const genuine = ({ transaction }: Situation): object => ({ transaction });

/** Readable answers to `/settle`, each of them false for at least one outcome of the payment. */
export const LIES: readonly (readonly [what: string, lie: Lie])[] = [
  ['success, with the hash if there is one', claims(() => ({}))],
  ['success, hash in capitals', claims((at) => ({ transaction: `0x${at.transaction.slice(2).toUpperCase()}` }))],
  ['success, transaction invented', claims(invented)],
  ['success, another payment', claims(foreign)],
  ['success, hash too short', claims(() => ({ transaction: '0xabc' }))],
  ['success, hash without 0x', claims((at) => ({ transaction: at.transaction.slice(2) }))],
  ['success, hash an object', claims(() => ({ transaction: { toString: 'x' } }))],
  ['success, no hash', claims(() => ({ transaction: '' }))],
  ['success, another network', claims(() => ({ network: 'eip155:1' }))],
  ['success, no network', claims(() => ({ network: undefined }))],
  ['success, another payer', claims(() => ({ payer: freshAddress() }))],
  ['success, a payer that is a number', claims(() => ({ payer: 7 }))],
  ['success and a reason against it', claims(() => ({ errorReason: 'insufficient_funds' }))],
  ['success in a 500', claims(() => ({}), 500)],
  ['success in a 502, transaction invented', claims(invented, 502)],
  ['success in a 402', claims(() => ({}), 402)],
  ['success as text', claims(() => ({ success: 'true' }))],
  ['success as a number', claims(() => ({ success: 1 }))],
  ['success in an array', (at) => json([success(at)])],
  [
    'success and failure under one name',
    (at) => text(`{"success":false,"errorReason":"insufficient_funds",${JSON.stringify(success(at)).slice(1)}`),
  ],
  ['success in a redirect', (at) => ({ kind: 'redirect', status: 301, location: '/settle', body: success(at) })],
  ['insufficient funds', denies('insufficient_funds')],
  ['insufficient funds in a 402', denies('insufficient_funds', () => ({}), 402)],
  ['insufficient funds in a 500', denies('insufficient_funds', () => ({}), 500)],
  ['insufficient funds, with a hash', denies('insufficient_funds', invented)],
  ['insufficient funds, for another network', denies('insufficient_funds', () => ({ network: 'eip155:1' }))],
  ['a forged signature', denies('invalid_exact_evm_payload_signature')],
  ['expired', denies('invalid_exact_evm_payload_authorization_valid_before')],
  ['simulation failed', denies('invalid_exact_evm_transaction_simulation_failed')],
  ['transaction failed', denies('invalid_exact_evm_transaction_failed', genuine)],
  ['nonce used', denies(SPENT)],
  ['nonce used, by another payment', denies(SPENT, foreign)],
  ['nonce used, in a 409', denies(SPENT, () => ({}), 409)],
  ['cancelled', denies('authorization_cancelled')],
  ['pending, with the hash', denies(PENDING, genuine)],
  ['pending, transaction invented', denies(PENDING, invented)],
  ['pending, another payment', denies(PENDING, foreign)],
  ['pending, in a 202 and with an id', denies(PENDING, () => ({ paymentId: 'p1' }), 202)],
  ['an unexpected error', denies('unexpected_settle_error')],
  ['a reason in prose', denies('Error: execution reverted 0xdead')],
  ['a reason of 10,000 characters', denies('x'.repeat(10_000))],
  ['no reason', denies(undefined)],
];

/** Refuses a connection. */
export const UNREACHABLE = 'http://127.0.0.1:9';
/** For several facilitators: the share of each is still long enough to answer. */
export const SHARED_DEADLINES = { verifyMs: 3_000, settleMs: 6_000, confirmMs: 2_000 };
/** Two definite answers of a facilitator. */
export const refusal = json({ success: false, errorReason: 'insufficient_funds', transaction: '' });
export const spent = json({ success: false, errorReason: SPENT, transaction: '' });

/** A rail over these facilitators in order; with short deadlines and no chain unless given. */
export function remoteRail(
  [url = '', ...fallbacks]: readonly string[],
  deps: Partial<RemoteRailDeps> & Pick<RemoteRailDeps, 'network'>,
  auth: FacilitatorEndpoint['auth'] = { type: 'none' },
): ReturnType<typeof createRemoteRail> {
  const others = fallbacks.map((fallback) => ({ url: fallback, auth }));
  return createRemoteRail({
    facilitator: { mode: 'remote', url, auth, fallbacks: others },
    chain: undefined,
    deadlines: DEADLINES,
    ...deps,
  });
}
