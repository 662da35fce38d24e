import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { freePorts } from '../support/ports.ts';

const SOURCE = join(import.meta.dirname, '../support/ports.ts');
const MANY = 60;

describe('free ports', () => {
  it('never come twice in a process, also when several ask at once and when a block is used up', async () => {
    const asked = await Promise.all([freePorts(MANY), freePorts(MANY), freePorts(MANY), freePorts(MANY)]);
    const given = asked.flat();
    assert.equal(new Set(given).size, given.length);
    assert.equal(given.length, 4 * MANY);
  });

  it('are not shared between processes, although nothing listens on them yet', async () => {
    const script = `const { freePorts } = await import(${JSON.stringify(SOURCE)});
      console.log(JSON.stringify(await freePorts(${MANY}))); setTimeout(() => {}, 2_000);`;
    const ask = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    const given = (await Promise.all([ask(), ask(), ask(), ask()])).flatMap(
      ({ stdout }) => JSON.parse(stdout) as number[],
    );
    assert.equal(new Set(given).size, 4 * MANY);
  });
});
