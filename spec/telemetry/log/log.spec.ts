import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import {
  createLog,
  failureLog,
  LINES_A_SECOND,
  MaskedSecrets,
  reconcileLog,
  type ThrottleTime,
  throttled,
} from '../../../src/telemetry/log/log.ts';

function logged(secrets: readonly string[], write: (log: ReturnType<typeof createLog>) => void): string {
  const lines: string[] = [];
  write(createLog('info', secrets, { write: (line) => void lines.push(line) }));
  return lines.join('');
}

describe('the log', () => {
  it('hides a secret that begins with an earlier one as a whole', () => {
    const lines: string[] = [];
    const secrets = new MaskedSecrets(['prod-password-2026']);
    const log = createLog('info', secrets, { write: (line) => void lines.push(line) });
    secrets.add(['prod-password-2026-11-rotated']);
    log.info('a peer said prod-password-2026-11-rotated');
    assert.match(lines.join(''), /a peer said \[secret\]"/);
  });

  it('writes of an error its type, code and message along its causes; no stack and no property', () => {
    const inner = Object.assign(new TypeError('inner'), { code: 'ECONNREFUSED', request: { headers: 'leaky' } });
    const line = logged([], (log) => log.warn({ err: new Error('outer', { cause: inner }) }, 'what'));
    const { err } = JSON.parse(line) as { err: object };
    assert.deepEqual(err, {
      type: 'Error',
      message: 'outer',
      cause: { type: 'TypeError', message: 'inner', code: 'ECONNREFUSED' },
    });
  });

  it('a cause that leads to itself ends', () => {
    const loop = new Error('loop');
    loop.cause = loop;
    assert.ok(logged([], (log) => log.warn({ err: loop }, 'what')).length < 1_000);
  });

  it('a configured secret that a peer quotes does not get through, in any spelling JSON has for it', () => {
    const secrets = ['operator-token-7d0c2b', 'a "quoted" key\\with a backslash', 'redis-password-1f9e'];
    const text = logged(secrets, (log) => {
      for (const secret of secrets) {
        const inner = new Error(`refused: Bearer ${secret}`);
        log.info(`said ${secret} twice: ${secret}`);
        log.warn({ err: new Error('failed', { cause: new Error(`on the way: ${secret}`, { cause: inner }) }) }, secret);
        log.error({ member: secret, deep: { list: [secret] }, [secret]: true }, 'a fact');
      }
    });
    for (const secret of secrets) assert.ok(!text.includes(JSON.stringify(secret).slice(1, -1)), secret);
    assert.equal(text.match(/\[secret\]/g)?.length, 8 * secrets.length);
  });

  it('has ten lines a second of one failure, and one with the number of the others', async () => {
    const lines: { readonly code?: string; readonly lines?: number }[] = [];
    const log = createLog('info', [], { write: (line) => void lines.push(JSON.parse(line)) });
    const failed = failureLog(log);
    for (const code of ['BACKEND_ERROR', 'INPUT_INVALID'] as const)
      for (let call = 0; call < 500; call += 1)
        failed(new GatewayError(code), { requestId: `req_${call}`, callId: 'call' });
    failed(new GatewayError('STORAGE_ERROR'), { requestId: 'req_other', callId: 'call' });
    assert.deepEqual(
      lines.map(({ code }) => code),
      [...Array.from({ length: 10 }, () => 'BACKEND_ERROR'), 'STORAGE_ERROR'],
    );
    while (lines.length < 12) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.partialDeepStrictEqual(lines[11], { code: 'BACKEND_ERROR', lines: 490 });
  });

  it('does the same for payments that wait to be reconciled', () => {
    const lines: string[] = [];
    const wait = reconcileLog(createLog('info', [], { write: (line) => void lines.push(line) }));
    for (let payment = 0; payment < 100; payment += 1) wait({ payId: `pay_${payment}`, err: new Error('away') });
    assert.equal(lines.length, 10);
  });
});

/** A clock that stands until it is moved, milliseconds. */
function clock(): ThrottleTime & { advance(ms: number): void } {
  let now = 0;
  const due: { readonly at: number; readonly then: () => void }[] = [];
  return {
    now: () => now,
    after: (ms, then) => void due.push({ at: now + ms, then }),
    advance(ms) {
      now += ms;
      for (const { at, then } of due.splice(0)) at <= now ? then() : due.push({ at, then });
    },
  };
}

function begun() {
  const time = clock();
  const written: string[] = [];
  const held: (readonly [string, number])[] = [];
  const spare = throttled((kind, lines) => void held.push([kind, lines]), time);
  const write = (kind: string, times: number): void => {
    for (let i = 0; i < times; i += 1) spare(kind, () => void written.push(kind));
  };
  return { time, written, held, write };
}

describe('the throttle of log lines', () => {
  it('writes the first ten of a second, and holds the eleventh back', () => {
    const { written, write } = begun();
    write('a', LINES_A_SECOND);
    assert.equal(written.length, 10);
    write('a', 1);
    assert.equal(written.length, 10);
  });

  it('reports at the end of the second how many were held back, once', () => {
    const { time, written, held, write } = begun();
    write('a', 25);
    time.advance(999);
    assert.deepEqual(held, []);
    time.advance(1);
    assert.deepEqual(held, [['a', 15]]);
    time.advance(5_000);
    assert.deepEqual(held, [['a', 15]]);
    write('a', 1);
    assert.equal(written.length, 11);
  });

  it('reports nothing when nothing was held back', () => {
    const { time, written, held, write } = begun();
    for (let second = 0; second < 3; second += 1) {
      write('a', 10);
      time.advance(1_000);
    }
    assert.equal(written.length, 30);
    assert.deepEqual(held, []);
  });

  it('writes one kind however many lines another has', () => {
    const { time, written, held, write } = begun();
    write('a', 1_000);
    write('b', 1);
    assert.equal(written.filter((kind) => kind === 'b').length, 1);
    time.advance(1_000);
    assert.deepEqual(held, [['a', 990]]);
  });
});
