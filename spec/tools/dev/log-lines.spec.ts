import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stripVTControlCharacters, styleText } from 'node:util';
import type { GatewayConfig } from '../../../src/config/document/config.ts';
import { readableLine } from '../../../tools/dev/log-lines.ts';

const sold = {
  resources: [{ id: 'report', pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' } }],
  protocols: { mcp: { mountPath: '/mcp' } },
} as unknown as GatewayConfig;
const HASH = `0x${'1'.repeat(64)}`;

/** A line of the log, without its time. */
function shown(entry: object, colour = false): string | undefined {
  const line = JSON.stringify({ level: 30, time: '2026-11-26T01:02:03.004Z', ...entry });
  return readableLine(line, { colour, sold })?.slice('hh:mm:ss  '.length);
}

function request(entry: object): object {
  return { method: 'POST', path: '/mcp', status: 200, ms: 7, msg: 'request completed', ...entry };
}

const HEAD = `POST    ${'/mcp'.padEnd(40)}  200      7 ms`;

describe('a line of the log for people', () => {
  const ROWS: readonly (readonly [what: string, entry: object, line: string | undefined])[] = [
    [
      'a paid call',
      request({ channel: 'mcp', resource: 'report', outcome: 'delivered', transaction: HASH }),
      `${HEAD}  report  over mcp  paid 0.01 USDC  settled by ${HASH}`,
    ],
    [
      'a challenge',
      request({ channel: 'http', resource: 'report', outcome: 'payment_required' }),
      `${HEAD}  report  asked for 0.01 USDC`,
    ],
    [
      'a refused payment',
      request({ channel: 'http', resource: 'report', outcome: 'payment_required', refusal: 'insufficient_funds' }),
      `${HEAD}  report  refused: insufficient_funds`,
    ],
    ['a free call', request({ channel: 'http', resource: 'status', outcome: 'delivered' }), `${HEAD}  status  free`],
    [
      'an answer given again',
      request({ channel: 'http', resource: 'report', outcome: 'replayed', transaction: HASH }),
      `${HEAD}  report  paid before, given again  settled by ${HASH}`,
    ],
    [
      'a failure after the payment',
      request({ channel: 'http', resource: 'report', outcome: 'BACKEND_ERROR', transaction: HASH }),
      `${HEAD}  report  BACKEND_ERROR  settled by ${HASH}`,
    ],
    [
      'a refused mandate',
      request({ channel: 'http', resource: 'report', outcome: 'AUTHORIZATION_INVALID', reason: 'input_mismatch' }),
      `${HEAD}  report  AUTHORIZATION_INVALID  input_mismatch`,
    ],
    ['what passes to the merchant', request({ passed: true }), `${HEAD}  passed to the merchant`],
    [
      'an aborted answer',
      request({ channel: 'http', resource: 'status', outcome: 'client_gone', msg: 'request aborted' }),
      `${HEAD}  status  client_gone  the caller left`,
    ],
    ['a probe', request({ method: 'GET', path: '/ready' }), undefined],
    ['the handshake of a client of MCP', request({ channel: 'mcp' }), undefined],
    ['a stream that is not offered', request({ method: 'GET', status: 405, outcome: 'METHOD_NOT_ALLOWED' }), undefined],
    ['the start', { msg: 'listening', port: 8402 }, undefined],
    [
      'bad health',
      { level: 40, msg: 'health', component: 'x402', status: 'fail', cause: 'no answer' },
      'x402 fail  no answer',
    ],
    ['good health', { msg: 'health', component: 'x402', status: 'pass' }, 'x402 pass'],
    [
      'a failure',
      { level: 40, code: 'BACKEND_ERROR', msg: 'The merchant backend did not deliver.', err: { message: 'no answer' } },
      'BACKEND_ERROR  no answer',
    ],
    [
      'a warning',
      { level: 40, msg: 'paid calls are refused', err: { type: 'Error', message: 'ECONNREFUSED' } },
      'paid calls are refused  ECONNREFUSED',
    ],
  ];
  for (const [what, entry, line] of ROWS) it(`of ${what}`, () => assert.equal(shown(entry), line));

  it('has the time of the machine', () => {
    const line = readableLine(JSON.stringify(request({ time: '2026-11-26T01:02:03.004Z' })), { colour: false, sold });
    assert.equal(line?.slice(0, 8), new Date('2026-11-26T01:02:03.004Z').toTimeString().slice(0, 8));
  });

  it('is the same in colour, but for the colours', () => {
    for (const [, entry, line] of ROWS) {
      const coloured = shown(entry, true);
      if (line === undefined) assert.equal(coloured, undefined);
      else
        assert.ok(
          stripVTControlCharacters(readableLine(JSON.stringify(entry), { colour: true, sold }) ?? '').endsWith(line),
        );
    }
    assert.ok(shown(request({ status: 502 }), true)?.includes(styleText('red', '502', { validateStream: false })));
  });

  it('gives a terminal nothing that it would obey', () => {
    const line = shown(request({ path: '/\u001b[2J\r\n\u009b', outcome: '\u001b]0;x\u0007' })) ?? '';
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    assert.doesNotMatch(line, /[\x00-\x1f\x7f-\x9f]/);
  });

  it('stays as it is where it is not of the log', () => {
    assert.equal(readableLine('(node:1) Warning: x', { colour: true, sold }), '(node:1) Warning: x');
  });
});
