import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLog } from '../../src/telemetry/log.ts';

function logged(secrets: readonly string[], write: (log: ReturnType<typeof createLog>) => void): string {
  let text = '';
  write(
    createLog('info', secrets, {
      write(line) {
        text += line;
      },
    }),
  );
  return text;
}

describe('the log', () => {
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
    const secrets = ['key-with-"quotes"-inside', 'plain-secret-value'];
    const line = logged(secrets, (log) =>
      log.error({ err: new Error(`refused: ${secrets.join(' and ')}`) }, 'plain-secret-value'),
    );
    assert.ok(!line.includes('plain-secret-value') && !line.includes('quotes'));
    assert.equal(line.match(/\[secret\]/g)?.length, 3);
  });
});
