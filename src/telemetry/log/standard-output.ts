/**
 * Standard output as the destination of the log: lines are collected and written together by a
 * thread of Node's pool, in order, and no more of them wait than a bound.
 */

import { type DestinationStream, pino } from 'pino';

/** Characters collected before a write, so that a line costs no system call of its own. */
const BUFFER_CHARACTERS = 16_384;
/**
 * The same where several processes write to one output: so many bytes go into a pipe at once, and
 * never between those of another process. Characters are bytes but for a few messages.
 */
const PIPE_BUF = 4_096;
const SHARED_CHARACTERS = 3_840;
/** Longest time a line waits in that buffer, milliseconds. */
const FLUSH_EVERY_MS = 500;
/** Bytes that wait for a reader which stopped reading; what comes then is dropped and counted. */
const MAX_WAITING_BYTES = 8_388_608;

/** A process has one standard output. */
let lost = 0;

/** Lines that were dropped because nothing read the standard output. */
export function linesLost(): number {
  return lost;
}

/** Takes whole lines. */
interface LineOutput extends DestinationStream {
  /** Hands what was collected to the thread, which goes on after this returns. */
  flush(): void;
}

/**
 * `onLost` is called once after each loss, when the reader reads again: how many lines were lost in
 * all. `shared`: other processes write to the same output, and no line may be cut by another.
 *
 * The pipe blocks, which holds up the thread alone. Node makes it non-blocking as soon as anything
 * asks for `process.stdout`, as each `stream.pipe()` does; pino would then wait 100 ms for a pipe
 * that is free after one, and a busy log end seconds late.
 */
export function standardOutput(onLost: (inAll: number) => void, shared = false): LineOutput {
  const { _handle } = process.stdout as { readonly _handle?: { setBlocking?(on: boolean): void } };
  _handle?.setBlocking?.(true);
  let collected = '';
  let timer: NodeJS.Timeout | undefined;
  let told = lost;
  // The library does nothing where it is told to flush while its thread writes.
  let writes = false;
  let again = false;
  const handOver = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const lines = collected;
    collected = '';
    if (lines === '') return;
    out.write(lines);
    writes = true;
  };
  const flush = (): void => {
    again = writes;
    handOver();
    writes = true;
    out.flush();
  };
  // Before the listener of the library, which then writes what it has before the process ends, but
  // not what a thread was given in the same turn: so nothing may be long enough for one.
  process.on('exit', () => {
    out.flushSync();
    handOver();
  });
  // The library measures all of its last buffer with each write: it gets whole buffers, not lines.
  const most = shared ? SHARED_CHARACTERS : BUFFER_CHARACTERS;
  const size = { minLength: most, maxWrite: shared ? PIPE_BUF : 4 * most, maxLength: MAX_WAITING_BYTES };
  const out = pino.destination({ dest: 1, sync: false, ...size });
  out.on('drop', (lines: string) => {
    lost += lines.split('\n').length - 1;
  });
  out.on('drain', () => {
    writes = false;
    if (again) flush();
    if (told === lost) return;
    told = lost;
    onLost(lost);
  });
  return {
    write(line) {
      if (shared && collected.length + line.length > most) handOver();
      collected += line;
      if (collected.length >= most) handOver();
      else timer ??= setTimeout(flush, FLUSH_EVERY_MS).unref();
    },
    flush,
  };
}
