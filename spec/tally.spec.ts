import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Tally } from './tally.ts';

type Passed = Parameters<Tally['passed']>[0];
type Failed = Parameters<Tally['failed']>[0];

const SHARED = { file: '/run/shared.mjs', specs: ['spec/a.spec.ts', 'spec/b.spec.ts'] };

const UNREAD = { parentId: 0, tags: [], testId: 1, testNumber: 1, line: 1, column: 1 };

function pass(name: string, nesting: number, type: 'suite' | 'test' = 'test'): Passed {
  return { ...UNREAD, name, nesting, file: '/elsewhere/helper.ts', details: { type, duration_ms: 1 } };
}

function fail(name: string, nesting: number, cause: string, type: 'suite' | 'test' = 'test', file = '/x.ts'): Failed {
  const error = Object.assign(new Error(cause), { failureType: cause, code: 'ERR_TEST_FAILURE', cause: new Error() });
  return { ...UNREAD, name, nesting, file, details: { type, duration_ms: 1, error } };
}

describe('results by spec file', () => {
  it('gives a test to the spec whose suite ends next, wherever the test stands', () => {
    const tally = new Tally([SHARED]);
    tally.passed(pass('one', 2));
    tally.failed(fail('two', 2, 'testCodeFailure'));
    tally.failed(fail('describe', 1, 'subtestsFailed', 'suite'));
    tally.failed(fail('spec/a.spec.ts', 0, 'subtestsFailed', 'suite'));
    tally.passed(pass('three', 1));
    tally.passed(pass('spec/b.spec.ts', 0, 'suite'));
    tally.endOfProcess(SHARED.file);
    assert.deepEqual(Object.fromEntries(tally.results()), {
      'spec/a.spec.ts': { passed: 1, failed: 1, skipped: [] },
      'spec/b.spec.ts': { passed: 1, failed: 0, skipped: [] },
    });
  });

  it('counts a suite that could not be loaded as a failure of its spec', () => {
    const tally = new Tally([SHARED]);
    tally.failed(fail('spec/a.spec.ts', 0, 'testCodeFailure', 'suite'));
    tally.passed(pass('spec/b.spec.ts', 0, 'suite'));
    assert.equal(tally.results().get('spec/a.spec.ts')?.failed, 1);
    assert.equal(tally.results().get('spec/b.spec.ts')?.failed, 0);
  });

  it('gives the death of a process to each of its specs', () => {
    const tally = new Tally([SHARED]);
    tally.passed(pass('one', 1));
    tally.passed(pass('spec/a.spec.ts', 0, 'suite'));
    tally.failed(fail(SHARED.file, 0, 'testCodeFailure', 'test', SHARED.file));
    assert.deepEqual(
      [...tally.results().values()].map(({ failed }) => failed),
      [1, 1],
    );
  });

  it('counts a spec without a report as failed', () => {
    assert.equal(new Tally([SHARED]).results().get('spec/b.spec.ts')?.failed, 1);
  });

  it('keeps skipped tests by name', () => {
    const tally = new Tally([{ file: '/spec/c.spec.ts', specs: ['spec/c.spec.ts'] }]);
    tally.passed({ ...pass('left out', 0), skip: 'no data' });
    tally.endOfProcess('/spec/c.spec.ts');
    assert.deepEqual(tally.results().get('spec/c.spec.ts'), { passed: 0, failed: 0, skipped: ['left out: no data'] });
  });
});
