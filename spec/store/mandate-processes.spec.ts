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

const MAIN = fileURLToPath(import.meta.resolve('./mandates-main.ts'));
/** Claims of each of the two processes. */
const EACH = 100;
const directory = mkdtempSync(join(tmpdir(), 'acg-mandates-'));

let redis: TestRedis;
before(async () => {
  redis = await startRedis();
});
after(async () => {
  await redis.stop();
  rmSync(directory, { recursive: true, force: true });
});

describe('two processes that claim at once', () => {
  for (const engine of ['redis', 'sqlite'] as const)
    for (const how of ['paid', 'free'] as const) {
      it(`${engine}, ${how}: of 200 claims on a budget for 100 exactly 100 are accepted`, async () => {
        assert.equal(sum(await claimed(engine, how, 'budget')), 100);
      });

      it(`${engine}, ${how}: one mandate, 200 times, is accepted once`, async () => {
        assert.equal(sum(await claimed(engine, how, 'mandate')), 1);
      });
    }
});

/** How many claims each process had accepted. */
async function claimed(engine: 'redis' | 'sqlite', how: string, what: string): Promise<readonly number[]> {
  const name = randomUUID();
  const at = engine === 'redis' ? redis.url : join(directory, `${name}.db`);
  const order = [engine, at, how, what, name, `${EACH}`];
  // One after the other: a SQLite file is made by one process alone.
  await using one = await start(order);
  await using two = await start(order);
  one.go();
  two.go();
  return await Promise.all([one.answer(), two.answer()]);
}

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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
