import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { createLog } from '../../../src/telemetry/log/log.ts';
import { attack } from '../catalogue.ts';

const SECRETS = ['operator-token-7d0c2b', 'a "quoted" key\\with a backslash', 'redis-password-1f9e'] as const;

describe('secrets that a peer quotes', () => {
  attack('O7', 'are in no line of the log, from any member or cause, neither plain nor as JSON escapes them', () => {
    const lines: string[] = [];
    const log = createLog('trace', SECRETS, { write: (line) => void lines.push(line) });
    for (const secret of SECRETS) {
      const inner = new Error(`refused: Bearer ${secret}`);
      log.info(`said ${secret} twice: ${secret}`);
      log.warn({ err: new Error('failed', { cause: new Error(`on the way: ${secret}`, { cause: inner }) }) }, secret);
      log.error({ member: secret, deep: { list: [secret] }, [secret]: true }, 'a fact');
    }
    assert.equal(lines.length, 3 * SECRETS.length);
    const text = lines.join('');
    for (const secret of SECRETS) {
      assert.ok(!text.includes(secret), secret);
      assert.ok(!text.includes(JSON.stringify(secret).slice(1, -1)), secret);
      for (const { msg } of lines.map((line) => JSON.parse(line) as { msg: string })) assert.ok(!msg.includes(secret));
    }
    assert.ok(text.split('[secret]').length > 7 * SECRETS.length, 'they were there');
  });
});
