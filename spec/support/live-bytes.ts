import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
setFlagsFromString('--no-expose-gc');

/** What this process still refers to, in bytes: its heap and its buffers after a collection. */
export function liveBytes(): number {
  // The first collection leaves the buffers that it found to a thread; the second waits for it.
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
