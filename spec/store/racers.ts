import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { leash } from '../../tools/local-world/leash.ts';

/**
 * How many claims each of two processes had accepted that began at once. `main`: the file that each
 * runs; `order`: its arguments, the same for both.
 */
export async function race(main: string, order: readonly string[]): Promise<readonly [number, number]> {
  // One after the other: a SQLite file is made by one process alone.
  await using one = await start(main, order);
  await using two = await start(main, order);
  one.go();
  two.go();
  return await Promise.all([one.answer(), two.answer()]);
}

async function start(main: string, order: readonly string[]) {
  const child = spawn(process.execPath, [main, ...order], { stdio: ['pipe', 'pipe', 'inherit'] });
  leash(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => (await lines.next()).value ?? assert.fail('it ended early');
  assert.equal(await line(), 'ready');
  return {
    go: () => void child.stdin.write('go\n'),
    answer: async () => Number(await line()),
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}
