/**
 * Loaded into a process that runs with --expose-gc: on SIGUSR2 it prints the memory that is left
 * after a collection, bytes, as a line of JSON with a number that counts the lines.
 */
let lines = 0;
process.on('SIGUSR2', () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  lines += 1;
  process.stdout.write(`${JSON.stringify({ meter: lines, bytes: heapUsed + external })}\n`);
});
