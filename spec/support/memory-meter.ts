/**
 * Loaded into a process: on SIGUSR2 it prints the bytes that are live there, as a line of JSON with
 * a number that counts the lines.
 */

import { liveBytes } from './live-bytes.ts';

let lines = 0;
process.on('SIGUSR2', () => {
  lines += 1;
  process.stdout.write(`${JSON.stringify({ meter: lines, bytes: liveBytes() })}\n`);
});
