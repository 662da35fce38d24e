/**
 * The other end of leash.ts: reads `+<pid>` and `-<pid>` lines, and when the pipe closes, because
 * its owner ended in whatever way (kill -9 included), ends every process still listed. It runs in a
 * session of its own, so that a Ctrl-C or a kill of the owner's process group does not take it
 * along before it has done its work.
 */
/** @type {Set<number>} */
const pids = new Set();
let rest = '';

process.stdin.setEncoding('latin1');
process.stdin.on('data', (chunk) => {
  const lines = `${rest}${chunk}`.split('\n');
  rest = lines.pop() ?? '';
  for (const line of lines) {
    const pid = Number(line.slice(1));
    if (line.startsWith('+')) pids.add(pid);
    else pids.delete(pid);
  }
});
process.stdin.on('close', () => {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It had ended by itself.
    }
  }
});
