import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Check, failed, passed, runChecks, skipped, warned } from '../../../src/cli/doctor/check.ts';

const silent = () => undefined;
const statusesOf = async (checks: readonly Check[]) =>
  (await runChecks(checks, silent)).map(({ check, status, message }) => `${check} ${status} ${message}`);

describe('the checks of acg doctor', () => {
  it('run side by side, and are told in their order', async () => {
    const second = Promise.withResolvers<void>();
    const told: (readonly string[])[] = [];
    const checks: Check[] = [
      {
        name: 'first',
        async run() {
          await second.promise;
          return passed('one');
        },
      },
      {
        name: 'second',
        async run() {
          second.resolve();
          return [passed('two'), warned('three', 'act')];
        },
      },
    ];
    const findings = await runChecks(checks, (names) => told.push(names));
    assert.deepEqual(findings, [
      { check: 'first', status: 'PASS', message: 'one' },
      { check: 'second', status: 'PASS', message: 'two' },
      { check: 'second', status: 'WARN', message: 'three', remedy: 'act' },
    ]);
    assert.deepEqual(
      told.map(({ length }) => length),
      [2, 1, 0],
    );
  });

  it('are skipped behind one that fails or is skipped, not behind a warning', async () => {
    const run = async () => passed('ran');
    const checks: Check[] = [
      { name: 'warns', run: async () => warned('w', 'act') },
      { name: 'fails', run: async () => [passed('p'), failed('f', 'act')] },
      { name: 'skips', run: async () => skipped('s') },
      { name: 'a', needs: ['warns'], run },
      { name: 'b', needs: ['warns', 'fails'], run },
      { name: 'c', needs: ['skips'], run },
      { name: 'd', needs: ['b'], run },
    ];
    assert.deepEqual((await statusesOf(checks)).slice(-4), [
      'a PASS ran',
      'b SKIP see fails',
      'c SKIP see skips',
      'd SKIP see b',
    ]);
  });

  it('fail with what they throw, and when no answer comes in their time', async () => {
    const checks: Check[] = [
      {
        name: 'throws',
        run() {
          throw new Error('broken');
        },
      },
      { name: 'hangs', run: () => new Promise(() => undefined) },
    ];
    const findings = await runChecks(checks, silent, 50);
    assert.deepEqual(
      findings.map(({ check, status, message }) => `${check} ${status} ${message}`),
      ['throws FAIL broken', 'hangs FAIL no answer within 0.05 s'],
    );
  });
});
