import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import type { Request, Response } from 'express';
import type { Call } from '../../../src/pipeline/call.ts';
import type { AccessRecord } from '../../../src/server/http/access-record.ts';
import { callLog } from '../../../src/telemetry/log/call-line.ts';
import { createLog, httpLog } from '../../../src/telemetry/log/log.ts';

interface Shown {
  readonly url?: string;
  readonly requestId?: string;
  readonly status?: number;
  readonly finished?: boolean;
  readonly traceId?: string | undefined;
  readonly record?: Partial<AccessRecord>;
  readonly call?: Partial<Call>;
}

/** A request that is over, as both writers see it. */
function over({ url = '/mcp', requestId = 'mcp_1', status = 200, finished = true, record = {}, call }: Shown) {
  const access = { openedAt: performance.now(), channel: 'mcp', outcome: 'delivered', ...record };
  const req = { method: 'POST', url, originalUrl: url } as Request;
  const res = Object.assign(new EventEmitter(), {
    statusCode: status,
    writableFinished: finished,
    writableEnded: finished,
    getHeader: () => requestId,
    locals: { requestId, callId: 'call_1', accessRecord: access, call },
  }) as unknown as Response;
  return { req, res };
}

/** The line of `callLog`, and that of pino-http, as they are written. */
function lines(shown: Shown, level = 'info', secrets: readonly string[] = []) {
  const written = { call: [] as string[], http: [] as string[] };
  const tracing = { traceId: () => shown.traceId };
  const log = (to: string[]) => createLog(level, secrets, { write: (line) => void to.push(line) });
  const { req, res } = over(shown);
  callLog(log(written.call), tracing)(req, res);
  httpLog(log(written.http), tracing)(req, res, () => undefined);
  res.emit('finish');
  return written;
}

/** Without what depends on the moment. */
function read(line: string | undefined): Readonly<Record<string, unknown>> {
  const { time, ms, ...rest } = JSON.parse(line ?? assert.fail('no line')) as Record<string, unknown>;
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.ok(Number.isInteger(ms));
  return rest;
}

const HOSTILE = '"}\n{"level":60,"msg":"x"}\r\u2028\u0000\\ \ud800';

const CASES: Readonly<Record<string, Shown>> = {
  'a delivered call': { traceId: '0af7651916cd43dd8448eb211c80319c' },
  'a call of a resource': { call: { stage: 'resolved', resource: { id: 'report' } } as unknown as Partial<Call> },
  'a refused mandate': { status: 403, record: { outcome: 'AUTHORIZATION_REQUIRED', reason: 'mandate_expired' } },
  'a paid call': { record: { transaction: `0x${'1'.repeat(64)}` } },
  'a refused payment': { status: 402, record: { outcome: 'payment_required', refusal: 'insufficient_funds' } },
  'a failure in a JSON-RPC answer': { record: { outcome: 'BACKEND_ERROR' } },
  'a failure': { status: 502, record: { outcome: 'BACKEND_ERROR' } },
  'an aborted answer': { finished: false },
  'a path of many kilobytes': { url: `/api/resources/${'x'.repeat(30_000)}/invoke` },
  'a request that is no call': { record: { channel: undefined, outcome: undefined } },
  'hostile text in every place': {
    url: `/${HOSTILE}`,
    requestId: HOSTILE,
    traceId: HOSTILE,
    record: { reason: HOSTILE },
    call: { stage: 'resolved', resource: { id: HOSTILE } } as unknown as Partial<Call>,
  },
};

describe('the line of a call', () => {
  for (const [what, shown] of Object.entries(CASES))
    it(`says of ${what} what the line of any request says`, () => {
      const { call, http } = lines(shown);
      assert.deepEqual(read(call[0]), read(http[0]));
      assert.deepEqual([call.length, http.length], [1, 1]);
    });

  it('has the transaction that paid, and why a payment was refused', () => {
    assert.equal(read(lines(CASES['a paid call'] ?? {}).call[0])['transaction'], `0x${'1'.repeat(64)}`);
    assert.equal(read(lines(CASES['a refused payment'] ?? {}).call[0])['refusal'], 'insufficient_funds');
  });

  it('is one line, whatever its text', () => {
    const [line = ''] = lines(CASES['hostile text in every place'] ?? assert.fail()).call;
    assert.equal(line.indexOf('\n'), line.length - 1);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be written.
    assert.doesNotMatch(line.slice(0, -1), /[\x00-\x1f]/);
  });

  it('is written at the level of the log, and masks secrets', () => {
    assert.deepEqual(lines({}, 'warn').call, []);
    assert.equal(lines({ status: 502 }, 'warn').call.length, 1);
    assert.deepEqual(lines({ status: 502 }, 'silent').call, []);
    const { call } = lines({ requestId: 'sesame' }, 'info', ['sesame']);
    assert.equal(read(call[0])['requestId'], '[secret]');
  });
});
