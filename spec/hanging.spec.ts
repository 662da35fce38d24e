import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';

const HANGING = JSON.stringify(new URL('hanging.ts', import.meta.url).href);
/** In a process of its own: every child that is old enough is ended. */
const PROGRAM = `
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { endHanging } from ${HANGING};
const start = (code) => spawn(process.execPath, ['--eval', code]);
const hangs = start('for (;;);');
const stop = endHanging(200, (pid) => console.log(pid === hangs.pid));
console.log(...(await once(hangs, 'exit')));
stop();
console.log(...(await once(start(''), 'exit')));
`;

describe('spec processes that hang', () => {
  it('are ended, and no longer looked for once that is stopped', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM]);
    assert.deepEqual(stdout.trim().split('\n'), ['true', 'null SIGKILL', '0 null']);
  });
});
