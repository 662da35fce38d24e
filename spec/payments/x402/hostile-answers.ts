import assert from 'node:assert/strict';
import { MAX_VERDICT_BYTES } from '../../../src/payments/x402/facilitator.ts';
import type { ScriptedAnswer } from '../../support/hostile-facilitator.ts';

/** Short deadlines, so that a peer that hangs does not hold a test up. Milliseconds. */
export const DEADLINES = { verifyMs: 400, settleMs: 400, confirmMs: 100 };
/** A facilitator signs for itself: nothing is ever written ahead. */
export const noWriteAhead = async (): Promise<void> => assert.fail('a remote rail signs nothing');

export const json = (body: unknown, status = 200): ScriptedAnswer => ({ kind: 'json', status, body });
export const text = (body: string, type = 'application/json', status = 200): ScriptedAnswer => ({
  kind: 'text',
  type,
  body,
  status,
});

/** What no verdict can be read from, at either endpoint. */
export const NO_VERDICT: readonly (readonly [what: string, answer: ScriptedAnswer])[] = [
  ['500 with an error document', json({ error: 'internal' }, 500)],
  ['429', json({ message: 'slow down' }, 429)],
  ['401', json({ error: 'unauthorized' }, 401)],
  ['200 with an empty body', text('')],
  ['200 with bad JSON', text('{"isValid":true,"success":true')],
  ['200 with HTML', text('<html>{"success":true}</html>', 'text/html')],
  ['the verdict twice', text('{"isValid":false,"isValid":true,"success":false,"success":true}')],
  ['a prototype in disguise', text('{"__proto__":{"isValid":true,"success":true}}')],
  ['verdicts as text', json({ isValid: 'true', success: 'true' })],
  ['verdicts as numbers', json({ isValid: 1, success: 1 })],
  ['an array', json([{ isValid: true, success: true }])],
  ['null', json(null)],
  ['10 MB', text(JSON.stringify({ isValid: true, success: true, padding: 'x'.repeat(10_000_000) }))],
  [
    'just above the cap',
    text(JSON.stringify({ isValid: true, success: true, padding: 'x'.repeat(MAX_VERDICT_BYTES) })),
  ],
  ['a redirect', { kind: 'redirect', location: 'http://127.0.0.1:9/verify' }],
  ['silence', { kind: 'hang' }],
  ['a reset after the request', { kind: 'reset' }],
];
