import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

const FIXTURES = 'spec/fixtures/unsteady';

describe('a spec file that failed runs once more, alone', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'acg-unsteady-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  /** The last lines of a run of fixtures, and how it ended. */
  const lastLines = (files: readonly string[], again: boolean) =>
    new Promise<{ readonly code: unknown; readonly lines: readonly string[] }>((resolve) => {
      // Inside a test the runner would report to the one above it instead of printing.
      const { NODE_TEST_CONTEXT: _context, ...inherited } = process.env;
      const env = {
        ...inherited,
        SPECS_AGAIN: again ? '1' : '0',
        UNSTEADY_MARKER: join(directory, `${files.length}-${again}`),
      };
      const paths = files.map((file) => `${FIXTURES}/${file}.ts`);
      execFile(process.execPath, ['spec/run.ts', ...paths], { env }, (error, stdout) =>
        resolve({ code: error === null ? 0 : error.code, lines: stdout.trimEnd().split('\n').slice(-3) }),
      );
    });

  it('counts the second result and names the file', async () => {
    const { code, lines } = await lastLines(['first-fails'], true);
    assert.deepEqual(lines.slice(-2), [
      `UNSTEADY ${FIXTURES}/first-fails.ts: first 1 passed and 1 failed, then alone 2 passed and 0 failed`,
      '2 passed, 0 failed',
    ]);
    assert.equal(code, 0);
  });

  it('fails with a file that fails twice, and gives those a second try that shared its process', async () => {
    const { code, lines } = await lastLines(['first-fails', 'then-dies'], true);
    assert.match(
      lines.join('\n'),
      /^UNSTEADY .*first-fails\.ts: .*\nFAILED TWICE .*then-dies\.ts: .*\n2 passed, 1 failed$/,
    );
    assert.equal(code, 1);
  });

  it('fails with a test that fails every time', async () => {
    const { code, lines } = await lastLines(['always-fails'], true);
    assert.equal(lines.at(-1), '0 passed, 1 failed');
    assert.equal(code, 1);
  });

  it('leaves a run of a part at its first result', async () => {
    const { code, lines } = await lastLines(['first-fails'], false);
    assert.equal(lines.at(-1), '1 passed, 1 failed');
    assert.equal(code, 1);
  });
});
