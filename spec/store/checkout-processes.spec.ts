import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { leash } from '../support/leash.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const MAIN = fileURLToPath(import.meta.resolve('./checkouts-main.ts'));
/** Claims of each of the two processes. */
const EACH = 100;
const directory = mkdtempSync(join(tmpdir(), 'acg-checkouts-'));

let redis: TestRedis;
before(async () => {
  redis = await startRedis();
});
after(async () => {
  await redis.stop();
  rmSync(directory, { recursive: true, force: true });
});

describe('two processes that claim checkout operations at once', () => {
  for (const engine of ['redis', 'sqlite'] as const)
    for (const [what, told] of [
      ['key', 'one key'],
      ['session', 'as many keys of one session'],
    ] as const)
      it(`${engine}: of 200 claims of ${told} exactly one is the first`, async () => {
        const name = randomUUID();
        const at = engine === 'redis' ? redis.url : join(directory, `${name}.db`);
        const order = [engine, at, what, name, `${EACH}`];
        // One after the other: a SQLite file is made by one process alone.
        await using one = await start(order);
        await using two = await start(order);
        one.go();
        two.go();
        const [first, second] = await Promise.all([one.answer(), two.answer()]);
        assert.equal(first + second, 1);
      });
});

async function start(args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
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
