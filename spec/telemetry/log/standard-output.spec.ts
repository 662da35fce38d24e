import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';

/** O_NONBLOCK of Linux. */
const NON_BLOCKING = 0o4000;
/** More than a pipe holds: the last line leaves only after its reader has made room many times. */
const LINES = 20_000;

/** Logs, with all that opens `process.stdout`, until a line arrives on stdin; then ends. */
const PROGRAM = `
  import { PassThrough, Readable } from 'node:stream';
  import { createLog } from ${JSON.stringify(new URL('../../../src/telemetry/log/log.ts', import.meta.url).href)};
  const log = createLog('info', []);
  Readable.from(['']).pipe(new PassThrough());
  log.info('first');
  log.flush();
  process.stdin.once('data', () => {
    for (let at = 1; at <= ${LINES}; at += 1) log.info({ at }, 'one of many');
    log.flush();
    process.stdin.destroy();
  });
`;

/** What a pipe and the write that is on its way hold, at most. */
const PIPE_BYTES = 1_048_576;
const STALLED_LINES = 60_000;
/** Logs more than may wait in one turn, then says so on stderr. */
const STALLED = `
  import { writeSync } from 'node:fs';
  import { createLog } from ${JSON.stringify(new URL('../../../src/telemetry/log/log.ts', import.meta.url).href)};
  const log = createLog('info', []);
  const text = 'x'.repeat(200);
  for (let at = 0; at < ${STALLED_LINES}; at += 1) log.info(text);
  log.flush();
  writeSync(2, 'logged');
`;
/** Ends in the turn in which it logs. */
const ENDED = `
  import { createLog } from ${JSON.stringify(new URL('../../../src/telemetry/log/log.ts', import.meta.url).href)};
  const log = createLog('info', []);
  for (let at = 0; at < 300; at += 1) log.info({ at }, 'one of many');
  process.exit(7);
`;

/** Flushes two lines in one turn, the second while the first is written, and stays. */
const FLUSHED = `
  import { createLog } from ${JSON.stringify(new URL('../../../src/telemetry/log/log.ts', import.meta.url).href)};
  const log = createLog('info', []);
  for (const text of ['first', 'last']) {
    log.info(text);
    log.flush();
  }
  process.stdin.resume();
`;

describe('the log on stdout', { timeout: 60_000 }, () => {
  it('waits for a full pipe instead of trying again later, and is complete when the process ends', async (t) => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    t.after(() => child.kill());
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    while (!output.includes('first')) await once(child.stdout, 'data');
    const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/${child.pid}/fdinfo/1`, 'utf8'))?.[1] ?? assert.fail();
    assert.equal(Number.parseInt(flags, 8) & NON_BLOCKING, 0, 'stdout blocks');
    child.stdin.write('go\n');
    const [code] = await once(child, 'close');
    assert.equal(code, 0);
    const lines = output.trimEnd().split('\n').slice(1);
    assert.deepEqual(
      lines.map((line) => (JSON.parse(line) as { readonly at: number }).at),
      Array.from({ length: LINES }, (_, index) => index + 1),
    );
  });

  it('keeps no more than 8 MiB for a reader that stopped, and says how many lines were lost', async (t) => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', STALLED], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.after(() => child.kill());
    // Nothing reads the lines until all are logged.
    await once(child.stderr, 'data');
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [code] = await once(child, 'close');
    assert.equal(code, 0);
    const lines = output
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly lost?: number });
    const last = lines.at(-1)?.lost ?? assert.fail('the loss is not told');
    assert.equal(lines.length - 1 + last, STALLED_LINES);
    assert.ok(Buffer.byteLength(output) < 8_388_608 + PIPE_BYTES);
  });

  it('has a line that is flushed while another one is written', async (t) => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', FLUSHED], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    t.after(() => child.kill());
    let output = '';
    for await (const text of child.stdout.setEncoding('utf8')) {
      output += text;
      if (output.includes('last')) child.stdin.end();
    }
    assert.equal(child.signalCode, null);
  });

  it('is complete when the process ends at once', async (t) => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', ENDED], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill());
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [code] = await once(child, 'close');
    assert.deepEqual([code, output.trimEnd().split('\n').length], [7, 300]);
  });
});
