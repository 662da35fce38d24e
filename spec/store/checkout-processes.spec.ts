import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { race } from './racers.ts';

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
    for (const [what, claims] of [
      ['key', 'one key'],
      ['session', 'as many keys of one session'],
    ] as const)
      it(`${engine}: of 200 claims of ${claims} exactly one is granted`, async () => {
        const name = randomUUID();
        const at = engine === 'redis' ? redis.url : join(directory, `${name}.db`);
        const order = [engine, at, what, name, `${EACH}`];
        const [first, second] = await race(MAIN, order);
        assert.equal(first + second, 1);
      });
});
