/**
 * Standard output as the destination of the log: lines are collected and written together by a
 * thread of Node's pool, in order, and no more of them wait than a bound.
 */

import { type DestinationStream, pino } from 'pino';

/** Characters collected before a write, so that a line costs no system call of its own. */
const BUFFER_CHARACTERS = 16_384;
/** Longest time a line waits in that buffer, milliseconds. */
const FLUSH_EVERY_MS = 500;
/** Most bytes that wait for a reader which stopped reading; later ones are dropped and counted. */
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
 * The pipe is set to block, which holds up the thread alone. The first use of `process.stdout`,
 * such as by `stream.pipe()`, makes it non-blocking: pino would then wait 100 ms for a pipe that is
 * free after 1 ms, and a busy log would end seconds late.
 */
export function standardOutput(onLost: (inAll: number) => void): LineOutput {
  const { _handle } = process.stdout as { readonly _handle?: { setBlocking?(on: boolean): void } };
  _handle?.setBlocking?.(true);
  let collected = '';
  let timer: NodeJS.Timeout | undefined;
  let told = lost;
  // pino ignores a flush while its thread writes.
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
  // Runs before pino's own listener, which writes its buffer but not the lines that a thread got in
  // the same turn: after `flushSync` the rest is too short for a thread.
  process.on('exit', () => {
    out.flushSync();
    handOver();
  });
  // pino measures its whole last buffer at each write, so it gets buffers, not lines.
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
