/**
 * Standard output as the destination of the log: lines are collected and written together by a
 * thread of Node's pool, in order, and no more of them wait than a bound.
 */

import { type DestinationStream, pino } from 'pino';

/** Characters collected before a write, so that a line costs no system call of its own. */
const BUFFER_CHARACTERS = 16_384;
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
 * all.
 *
 * The pipe blocks, which holds up the thread alone. Node makes it non-blocking as soon as anything
 * asks for `process.stdout`, as each `stream.pipe()` does; pino would then wait 100 ms for a pipe
 * that is free after one, and a busy log end seconds late.
 */
export function standardOutput(onLost: (inAll: number) => void): LineOutput {
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
  const size = {
    minLength: BUFFER_CHARACTERS,
    maxWrite: 4 * BUFFER_CHARACTERS,
    maxLength: MAX_WAITING_BYTES,
  };
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
      collected += line;
      if (collected.length >= BUFFER_CHARACTERS) handOver();
      else timer ??= setTimeout(flush, FLUSH_EVERY_MS).unref();
    },
    flush,
  };
}
